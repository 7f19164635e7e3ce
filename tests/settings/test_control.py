"""[control]: what the socket takes, from the next connection on."""

from __future__ import annotations

import json
import socket
import struct

import pytest

from fermix.errors import FermixError
from tests.bot import wait_for
from tests.settings.conftest import HANGING, Lab


def test_request_may_be_as_long_as_the_setting_says(lab: Lab) -> None:
    text = "x" * 70_000
    lab.put(control={"frame_limit_bytes": 65_536})

    with pytest.raises(FermixError, match="at most 65536 are taken"):
        lab.say(text)
    lab.put()

    assert text in lab.say(text).text


def test_as_many_busy_clients_are_served_as_the_setting_says(lab: Lab) -> None:
    lab.model.script(HANGING)
    lab.put(control={"connections": 4})
    for _ in range(4):
        lab.begin()

    with pytest.raises(FermixError, match="Too many clients"):
        lab.bot.status()
    lab._open.pop().close()
    wait_for("room for a client", lab.bot.is_ready)
    lab.put(control={"connections": 8})
    lab.begin()

    assert lab.bot.is_ready()


def test_half_a_request_is_waited_for_as_long_as_the_setting_says(lab: Lab) -> None:
    lab.put(control={"request_timeout_s": 0.2})

    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5.0)  # half of the default
        link.connect(str(lab.bot.home / "daemon.sock"))
        link.sendall(struct.pack(">I", 100) + b"{")
        answer = link.recv(65_536)

    assert json.loads(answer[4:])["error"]["message"] == "No whole request within 0.2 s."
