"""Brings what setup wrote to a daemon that runs already."""

from __future__ import annotations

import time
from typing import Any

from fermix.errors import FermixError, NotRunning
from fermix.ipc.client import open_connection
from fermix.paths import Home
from fermix.process.proc import look

_ANSWER_S = 30.0
_GONE_S = 10.0


def apply_to_running(home: Home, *, has_changed: bool) -> dict[str, Any]:
    """What the home's daemon did about it: `state`, and a `hint` for what is left to the person.

    A private daemon is sent away: the next command starts one that reads the new settings.
    """
    try:
        with open_connection(home.socket) as connection:
            if not has_changed:
                return {"state": "running", "hint": None}
            if connection.call("status", {}, _ANSWER_S).get("mode") == "private":
                pid = connection.peer_pid()
                connection.call("stop", {"only_private": True}, _ANSWER_S)
                _wait_until_gone(pid)
                return {"state": "stopped", "hint": None}
            waiting = connection.call("reload", {}, _ANSWER_S).get("needs_restart")
    except NotRunning:
        return {"state": "not_running", "hint": None}
    except FermixError as error:
        return {"state": "unchanged", "hint": f"It counts after: fermix restart ({error.message})"}
    hint = f"These count after fermix restart: {', '.join(map(str, waiting))}" if waiting else None
    return {"state": "reloaded", "hint": hint}


def _wait_until_gone(pid: int) -> None:
    end = time.monotonic() + _GONE_S
    while time.monotonic() < end and (found := look(pid)) is not None and not found.is_zombie:
        time.sleep(0.02)
