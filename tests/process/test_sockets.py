"""Whose socket is at the other end."""

from __future__ import annotations

import os
import socket

import pytest

from fermix.process import proc
from fermix.process.sockets import inode_between, looked_up


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)], ids=["IPv4", "IPv6"]
)
@pytest.mark.parametrize("way", ["asked", "looked up"])
def test_the_other_end_of_a_connection_is_found(host, family, way):
    with (
        socket.create_server((host, 0), family=family) as listener,
        socket.create_connection(listener.getsockname()[:2], timeout=5) as client,
    ):
        served, _ = listener.accept()
        with served:
            peer, own = served.getpeername()[:2], served.getsockname()[:2]
            found = inode_between(peer, own) if way == "asked" else looked_up(peer[1], own[1])

        assert found == os.fstat(client.fileno()).st_ino
        assert proc.holds_socket(os.getpid(), found)
        assert not proc.holds_socket(os.getppid(), found)


def test_a_client_that_an_ipv6_listener_shows_as_mapped_is_found():
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener,
        socket.create_connection(("127.0.0.1", listener.getsockname()[1]), timeout=5) as client,
    ):
        served, _ = listener.accept()
        with served:
            found = inode_between(served.getpeername()[:2], served.getsockname()[:2])

        assert found == os.fstat(client.fileno()).st_ino


def test_what_is_on_another_machine_is_not_found():
    assert inode_between(("192.0.2.1", 1234), ("192.0.2.2", 4030)) is None
