"""As much of a WebSocket client as talking to one server on loopback takes."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from typing import Any

_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
_FINAL, _MASKED = 0x80, 0x80


class WebSocket:
    """A connection that sends and receives JSON texts.

    Raises (every method): OSError when the server is gone or silent for `timeout_s`.
    Source: RFC 6455, sections 4.1 and 5.2; messages in one frame each, as the server here sends them.
    """

    def __init__(self, port: int, *, path: str = "/", timeout_s: float = 30.0) -> None:
        self._rest = b""
        self._link = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._shake_hands(port, path)
        except BaseException:
            self._link.close()
            raise

    def send(self, message: dict[str, Any]) -> None:
        self._send_frame(_TEXT, json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        """The next message; pings before it are answered."""
        while True:
            head = self._take(2)
            kind, size = head[0] & 0x0F, head[1] & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self._take(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._take(8))
            payload = self._take(size)
            if kind == _PING:
                self._send_frame(_PONG, payload)
            elif kind == _TEXT and head[0] & _FINAL:
                message: dict[str, Any] = json.loads(payload)
                return message
            elif kind != _PONG:
                raise ConnectionError(
                    f"the server sent a frame of kind {kind:#x}, a whole text was expected"
                )

    def close(self) -> None:
        self._link.close()

    def _shake_hands(self, port: int, path: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        )
        self._link.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._received()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        status = head.partition(b"\r\n")[0].decode("latin-1")
        if " 101" not in status:
            raise ConnectionError(f"the server answered {status!r}, a 101 was expected")

    def _send_frame(self, kind: int, payload: bytes) -> None:
        """One masked frame; the mask is zero, since nothing stands between us that it could protect."""
        size = len(payload)
        if size < 126:
            length = struct.pack("!B", _MASKED | size)
        else:
            length = struct.pack("!BH", _MASKED | 126, size)
        self._link.sendall(bytes([_FINAL | kind]) + length + bytes(4) + payload)

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._rest += self._received()
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _received(self) -> bytes:
        data = self._link.recv(65_536)
        if not data:
            raise ConnectionError("the server hung up")
        return data
