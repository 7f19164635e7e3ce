"""Whose socket is at the other end."""

from __future__ import annotations

import os
import socket
import sys

import gevent
import pytest

from fermix.process import proc
from fermix.process.sockets import Socket, looked_up, socket_between


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
            found = socket_between(peer, own) if way == "asked" else looked_up(peer[1], own[1])

        assert found == Socket(os.fstat(client.fileno()).st_ino, os.getuid())
        assert proc.holder_of(found.inode) == os.getpid()
    assert proc.holder_of(found.inode) is None


def test_a_client_that_an_ipv6_listener_shows_as_mapped_is_found():
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener,
        socket.create_connection(("127.0.0.1", listener.getsockname()[1]), timeout=5) as client,
    ):
        served, _ = listener.accept()
        with served:
            found = socket_between(served.getpeername()[:2], served.getsockname()[:2])

        assert found is not None
        assert found.inode == os.fstat(client.fileno()).st_ino


def test_what_is_on_another_machine_is_not_found():
    assert socket_between(("192.0.2.1", 1234), ("192.0.2.2", 4030)) is None


def test_a_client_of_this_machine_that_has_left_counts_as_one_of_ours(host):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname(), timeout=5)
        served, _ = listener.accept()
        with served:
            peer, own = served.getpeername(), served.getsockname()
            was_ours = host.holds_connection(peer, own)
            client.close()
            assert served.recv(1) == b""

            assert not was_ours
            assert host.holds_connection(peer, own)
    assert not host.holds_connection(("192.0.2.1", 1234), ("192.0.2.2", 4030))


CONNECT = "import socket; socket.create_connection(('127.0.0.1', {port}), timeout=9).recv(1)"


def test_a_commands_connection_is_told_from_one_of_somebody_else(host, ledger, shell):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        port = listener.getsockname()[1]
        script = f'setsid -w {sys.executable} -c "{CONNECT.format(port=port)}"'
        command = gevent.spawn(shell, script)
        theirs, _ = listener.accept()
        with theirs, socket.create_connection(("127.0.0.1", port), timeout=5) as ours:
            mine, _ = listener.accept()
            with mine:
                ends = [(each.getpeername(), each.getsockname()) for each in (theirs, mine)]

                assert [host.holds_connection(*pair) for pair in ends] == [True, False]
                found = [socket_between(*pair) for pair in ends]
                assert [ledger.is_free_of(each.inode) for each in found] == [False, True]
            ours.close()
        assert command.get(timeout=10).exit_code == 0


TO_ANOTHER_USER = "import os; os.setgroups([]); os.setgid(1000); os.setuid(1000); s = connect()"
GIVEN_AWAY = "import os; s = connect(); os.fchown(s.fileno(), 1000, 1000)"
IN_A_THREAD_OF_ITS_OWN = """
import ctypes, threading
def act():
    global s
    assert ctypes.CDLL(None).unshare(0x400) == 0
    s = connect()
    told.set()
    threading.Event().wait()
told = threading.Event()
threading.Thread(target=act, daemon=True).start()
told.wait()
"""
ON_ITS_WAY = """
left, right = socket.socketpair()
s = connect()
socket.send_fds(left, [b"x"], [s.fileno()])
s.close()
"""
HIDING = """
import encodings.idna, socket
def connect():
    return socket.create_connection(("127.0.0.1", {port}), timeout=9)
{way}
connect().recv(1)
"""
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(TO_ANOTHER_USER, marks=as_root, id="another user"),
        pytest.param(GIVEN_AWAY, marks=as_root, id="given away"),
        pytest.param(IN_A_THREAD_OF_ITS_OWN, id="thread"),
        pytest.param(ON_ITS_WAY, id="on its way"),
    ],
)
def test_a_command_that_hides_its_connection_is_still_known_for_one(host, shell, tmp_path, way):
    program = tmp_path / "hiding.py"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        program.write_text(HIDING.format(port=listener.getsockname()[1], way=way))
        command = gevent.spawn(shell, f"{sys.executable} {program}")
        theirs, _ = listener.accept()
        done, _ = listener.accept()

        with theirs, done:
            assert host.holds_connection(theirs.getpeername(), theirs.getsockname())
    assert command.get(timeout=10).exit_code == 0
