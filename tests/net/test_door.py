"""The owner's door: exactly one address, ends at once, gives bytes as they come."""

import socket
import ssl
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from gevent.server import StreamServer

from fermix.errors import (
    Cancelled,
    ConnectionLost,
    DeadlineExceeded,
    RedirectRefused,
    ResponseTooLarge,
    Unreachable,
)
from fermix.net.door import OwnerDoor
from fermix.net.response import Response
from fermix.net.tls import tls_context
from fermix.tasks import Cancel, Deadline, TaskGroup, sleep

SELF_SIGNED = Path(__file__).parent.parent / "fixtures" / "net" / "self-signed.pem"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
Serve = Callable[..., "RawServer"]  # noqa: F821  (the fixture's class)


def ask(door: OwnerDoor, *, cancel: Cancel | None = None, seconds: float = 10, **limits: float) -> Response:
    deadline = Deadline.after(seconds)
    return door.send(
        "POST", "/x", b"{}", headers={}, cancel=cancel or Cancel(), deadline=deadline, **limits
    )


def whole(connection: socket.socket, head: bytes) -> None:
    connection.sendall(HEAD + b"2\r\nok\r\n0\r\n\r\n")


def silent(connection: socket.socket, head: bytes) -> None:
    connection.sendall(HEAD + b"2\r\nok\r\n")
    connection.recv(1)


def test_the_path_goes_behind_the_base_and_the_connection_is_kept(serve: Serve) -> None:
    server = serve(whole)
    door = OwnerDoor(server.url + "/v1/")
    for _ in range(3):
        with ask(door) as response:
            assert (response.status, response.read_all()) == (200, b"ok")
    assert server.heads[0].startswith(b"POST /v1/x HTTP/1.1\r\n")
    assert server.connections == 1
    door.close()


def test_the_first_bytes_are_there_before_the_rest(serve: Serve) -> None:
    with ask(OwnerDoor(serve(silent).url)) as response:
        began = time.monotonic()
        assert response.piece() == b"ok"
        assert time.monotonic() - began < 1


@pytest.mark.parametrize("after", ["nothing", "head", "piece"])
def test_a_cancel_from_another_greenlet_ends_the_wait_at_once(serve: Serve, after: str) -> None:
    def answer(connection: socket.socket, head: bytes) -> None:
        connection.sendall({"nothing": b"", "head": HEAD, "piece": HEAD + b"2\r\nok\r\n"}[after])
        connection.recv(1)

    cancel, tasks = Cancel(), TaskGroup("test")
    door = OwnerDoor(serve(answer).url)
    tasks.start(lambda: (sleep(0.2), cancel.set("enough")))
    began = time.monotonic()
    with pytest.raises(Cancelled, match="enough"), ask(door, cancel=cancel) as response:
        response.read_all()
    assert time.monotonic() - began < 2


def test_a_cancel_set_before_sends_nothing(serve: Serve) -> None:
    server = serve(whole)
    cancel = Cancel()
    cancel.set("enough")
    with pytest.raises(Cancelled):
        ask(OwnerDoor(server.url), cancel=cancel)
    assert server.connections == 0


def test_a_cancel_after_the_answer_touches_nothing(serve: Serve) -> None:
    cancel = Cancel()
    with ask(OwnerDoor(serve(whole).url), cancel=cancel) as response:
        response.read_all()
    cancel.set("late")
    sleep(0.01)


def test_silence_longer_than_the_idle_timeout_ends_it(serve: Serve) -> None:
    with (
        pytest.raises(DeadlineExceeded, match="next part"),
        ask(OwnerDoor(serve(silent).url), idle_timeout_s=0.2) as response,
    ):
        response.read_all()


def test_a_trickle_is_ended_by_the_deadline_of_the_whole(serve: Serve) -> None:
    def trickle(connection: socket.socket, head: bytes) -> None:
        connection.sendall(HEAD)
        while True:
            connection.sendall(b"1\r\n.\r\n")
            sleep(0.05)

    with (
        pytest.raises(DeadlineExceeded, match="whole answer"),
        ask(OwnerDoor(serve(trickle).url), seconds=0.5, idle_timeout_s=5) as response,
    ):
        response.read_all()


def test_a_response_over_its_limit_is_dropped(serve: Serve) -> None:
    def endless(connection: socket.socket, head: bytes) -> None:
        connection.sendall(HEAD)
        while True:
            connection.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")

    with (
        pytest.raises(ResponseTooLarge, match="10000 bytes"),
        ask(OwnerDoor(serve(endless).url), limit_bytes=10_000) as response,
    ):
        response.read_all()


def test_a_flood_leaves_the_others_their_turn(serve: Serve) -> None:
    def flood(connection: socket.socket, head: bytes) -> None:
        connection.sendall(HEAD + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 10_000 + b"0\r\n\r\n")

    turns, tasks = [0], TaskGroup("test")

    def other() -> None:
        while True:
            turns[0] += 1
            sleep(0)

    with ask(OwnerDoor(serve(flood).url)) as response:
        response.piece()
        sleep(0.3)  # so that all of what fits is here
        tasks.start(other)
        before = turns[0]
        for _ in range(64):
            response.piece()
        assert turns[0] > before
    tasks.stop(1)


def test_a_cut_connection_is_told_apart_from_an_end(serve: Serve) -> None:
    def cut(connection: socket.socket, head: bytes) -> None:
        connection.sendall(HEAD + b"2\r\nok\r\n")
        raise OSError

    told = r"^The connection broke while the answer was read: the server closed it before the end\.$"
    with pytest.raises(ConnectionLost, match=told), ask(OwnerDoor(serve(cut).url)) as response:
        response.read_all()


@pytest.mark.parametrize(
    ("junk", "told"),
    [
        (b"\x00\xff\r\n\r\n", "the server does not speak HTTP"),
        (b"HTTP/1.1 banana\r\n\r\n", "the server does not speak HTTP"),
        (b"", "the server closed it without an answer"),
    ],
)
def test_an_answer_that_is_not_http_is_a_lost_connection(serve: Serve, junk: bytes, told: str) -> None:
    def answer(connection: socket.socket, head: bytes) -> None:
        connection.sendall(junk)
        raise OSError

    with pytest.raises(ConnectionLost, match=rf"^The connection to http://127\S+ broke: {told}\.$"):
        ask(OwnerDoor(serve(answer).url))


def test_nothing_listening_is_unreachable(serve: Serve) -> None:
    server = serve(whole)
    url = server.url
    server.stop()
    door = OwnerDoor(url)
    assert not door.is_listening(timeout_s=1)
    with pytest.raises(Unreachable, match=r"^Cannot connect to http://127\S+: Connection refused\.$"):
        ask(door)


def test_a_redirect_is_refused_and_not_followed(serve: Serve) -> None:
    other = serve(whole)

    def away(connection: socket.socket, head: bytes) -> None:
        connection.sendall(
            f"HTTP/1.1 307 Go\r\nLocation: {other.url}/x\r\nContent-Length: 0\r\n\r\n".encode()
        )

    with pytest.raises(RedirectRefused, match=other.url):
        ask(OwnerDoor(serve(away).url))
    assert other.connections == 0


def test_proxies_in_the_environment_are_ignored(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, server = serve(whole), serve(whole)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    with ask(OwnerDoor(server.url)) as response:
        response.read_all()
    assert (server.connections, proxy.connections) == (1, 0)


def test_a_server_nobody_vouches_for_is_refused() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)

    def answer(connection: socket.socket, address: object) -> None:
        # The client breaks the handshake off, as it should.
        with suppress(OSError), closing(connection):
            context.wrap_socket(connection, server_side=True).close()

    server = StreamServer(("127.0.0.1", 0), answer)
    server.start()
    with pytest.raises(Unreachable, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
        ask(OwnerDoor(f"https://127.0.0.1:{server.address[1]}"))
    server.stop(timeout=1)
    assert tls_context().check_hostname


def test_the_authorities_are_held_in_memory() -> None:
    context = tls_context()
    assert context.cert_store_stats()["x509_ca"] > 50
    assert context.verify_mode is ssl.CERT_REQUIRED
