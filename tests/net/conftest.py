"""A server on loopback that answers each connection as the test says."""

import socket
from collections.abc import Callable, Iterator

import pytest
from gevent.server import StreamServer

Answer = Callable[[socket.socket, bytes], None]


class RawServer:
    """Hands every connection and the head of its first request to `answer`."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.heads: list[bytes] = []
        self.connections = 0
        self._server = StreamServer(("127.0.0.1", 0), self._serve)
        self._server.start()

    @property
    def port(self) -> int:
        return self._server.address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.stop(timeout=1)

    def _serve(self, connection: socket.socket, address: object) -> None:
        self.connections += 1
        try:
            while head := _head(connection):
                self.heads.append(head)
                self.answer(connection, head)
        except OSError:
            return
        finally:
            connection.close()


def _head(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            return b""
        data += piece
    return data


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], RawServer]]:
    """Start a server; it is stopped for the test."""
    started: list[RawServer] = []

    def start(answer: Answer) -> RawServer:
        started.append(RawServer(answer))
        return started[-1]

    yield start
    for server in started:
        server.stop()
