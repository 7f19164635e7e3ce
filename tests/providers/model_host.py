"""A server of model files on loopback that can do to a download what the internet does."""

from __future__ import annotations

import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def model_bytes(size: int = 200_000, *, version: int = 3, seed: int = 1) -> bytes:
    """A whole GGUF file: one text, one list, one tensor."""
    head = b"GGUF" + struct.pack("<IQQ", version, 1, 2)
    head += _text(b"general.name") + struct.pack("<I", 8) + _text(b"tiny")
    head += _text(b"numbers") + struct.pack("<IIQ", 9, 4, 3) + struct.pack("<III", 1, 2, 3)
    head += _text(b"weights") + struct.pack("<IQIQ", 1, size, 0, 0)
    head += b"\0" * (-len(head) % 32)
    pattern = bytes((seed + number * 7) % 256 for number in range(251))
    return head + (pattern * (size // len(pattern) + 1))[: size - len(head)]


def _text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


class ModelHost:
    """Serves `files`; what else it does stands in its fields."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.etag = '"one"'
        self.takes_ranges = True
        self.says_length = True
        self.content_type = "application/octet-stream"
        self.cuts: list[int] = []
        """After how many bytes the next answers break."""
        self.redirects: dict[str, str] = {}
        self.statuses: list[int] = []
        self.gate = threading.Event()
        """Answers wait in their middle until it is set."""
        self.gate.set()
        self.quick = 0
        """So many of the first answers do not wait."""
        self.asked: list[tuple[str, str]] = []
        """Path and Range of every request."""
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, path: str = "/tiny.gguf") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range", "")
        self.asked.append((request.path, wanted))
        number = len(self.asked)
        request.close_connection = True
        if self.statuses:
            request.send_error(self.statuses.pop(0))
            return
        if request.path in self.redirects:
            request.send_response(302)
            request.send_header("Location", self.redirects[request.path])
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        body = self.files.get(request.path)
        if body is None:
            request.send_error(404)
            return
        begin = 0
        if wanted and self.takes_ranges and request.headers.get("If-Range") == self.etag:
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
            if begin >= len(body):
                request.send_error(416)
                return
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        else:
            request.send_response(200)
        if self.etag:
            request.send_header("ETag", self.etag)
        request.send_header("Content-Type", self.content_type)
        if self.says_length:
            request.send_header("Content-Length", str(len(body) - begin))
        request.end_headers()
        rest = body[begin:]
        if self.cuts:
            rest = rest[: self.cuts.pop(0)]
        try:
            request.wfile.write(rest[: len(rest) // 2])
            request.wfile.flush()
            if number > self.quick:
                self.gate.wait(30)
            request.wfile.write(rest[len(rest) // 2 :])
        except OSError:
            pass
