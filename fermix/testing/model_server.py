"""A scripted model on loopback that speaks every wire: chat completions, responses, messages, Ollama.

As its own process:   python -m fermix.testing.model_server --script FILE [--port 0]
                      python -m fermix.testing.model_server --delay-ms 500 --text "fixed answer"
prints the port it listens on, and serves until it is ended. In a test: `with ModelServer(...)`.

Which wire is told from the path. Besides it answers `GET /_requests` (what was asked, with monotonic
nanoseconds), `POST /_script` (a new script), `POST /_reset`, `GET …/models`.
"""

from __future__ import annotations

import argparse
import gc
import socket as plain_socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gevent
import msgspec
from gevent import socket
from gevent.pool import Pool
from gevent.server import StreamServer

from fermix.testing.model_script import Script, Step, chunks_of, read_script
from fermix.testing.model_wires import as_chat, content_type, wire_of
from fermix.testing.model_wires import refused as told_refused

_HEAD_LIMIT_BYTES = 65_536
_CONNECTIONS = 10_000


class Recorded(msgspec.Struct):
    """One request as it was seen."""

    path: str
    authorization: str
    body: Any
    received_ns: int
    """time.monotonic_ns when the whole request was there."""
    chunks_ns: list[int] = []
    """When each piece of the answer was handed to the socket."""
    first_byte_ns: int = 0
    last_byte_ns: int = 0
    ended: str = "open"
    """open, done, cut or client_gone."""


class ModelServer:
    """The scripted model; greenlets in the caller's process."""

    def __init__(self, *steps: dict[str, Any], script: Script | None = None, port: int = 0) -> None:
        """`steps` are taken one by one, in front of what `script` has."""
        self.script = script or Script()
        self.requests: list[Recorded] = []
        self.will(*steps)
        self._server = StreamServer(
            ("127.0.0.1", port), self._serve, backlog=4096, spawn=Pool(_CONNECTIONS)
        )

    @property
    def port(self) -> int:
        return int(self._server.address[1])

    @property
    def base_url(self) -> str:
        """What an owner would write as `base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def will(self, *steps: dict[str, Any]) -> None:
        """Answer the next requests with these steps."""
        self.script.steps.extend(msgspec.convert(list(steps), list[Step]))

    def will_say(self, *texts: str) -> None:
        """Answer the next requests with these texts."""
        self.will(*({"say": text} for text in texts))

    def always(self, step: dict[str, Any]) -> None:
        """Answer with this step whenever the script has no other."""
        self.script.default = msgspec.convert(step, Step)

    def start(self) -> None:
        self._server.start()

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def stop(self) -> None:
        self._server.stop(timeout=0)

    def __enter__(self) -> ModelServer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _serve(self, connection: socket.socket, address: object) -> None:
        connection.setsockopt(plain_socket.IPPROTO_TCP, plain_socket.TCP_NODELAY, 1)
        rest = b""
        try:
            while True:
                head, body, rest = _read_request(connection, rest)
                if not self._answer(connection, head, body):
                    return
        except (OSError, EOFError):
            return
        finally:
            connection.close()

    def _answer(self, connection: socket.socket, head: str, body: bytes) -> bool:
        """Answer one request; whether the connection can take another."""
        method, path, _ = head.split(" ", 2)
        if method == "POST" and (wire := wire_of(path)) is not None:
            return self._complete(connection, path, wire, head, body)
        is_list = method == "GET" and path.endswith("/models")
        if is_list and (refused := self.script.refusal(_shown_key(head), None)):
            _send_json(connection, refused[0], {"error": refused[1]})
            return True
        value = self._facts(f"{method} {path}", body)
        _send_json(
            connection, 200 if value is not None else 404, value if value is not None else {"error": path}
        )
        return True

    def _facts(self, what: str, body: bytes) -> object:
        """The answer to anything but a completion; None when it is not known."""
        ollama = self.script.ollama
        if what == "GET /_requests":
            return {"requests": self.requests}
        if what == "POST /_script":
            self.script = read_script(body)
            return {}
        if what == "POST /_reset":
            self.requests.clear()
            return {}
        if what.startswith("GET ") and what.endswith("/models") and self.script.is_listing:
            names = self.script.models if self.script.models is not None else ollama or ["scripted"]
            facts = self.script.facts
            data = [{"id": name, "object": "model", **facts.get(name, {})} for name in names]
            return {"object": "list", "data": data}
        if ollama is not None and what == "GET /api/tags":
            return {"models": [{"name": name, "model": name, "size": 1_000_000} for name in ollama]}
        if ollama is not None and what == "POST /api/show":
            asked = msgspec.json.decode(body)
            name = asked.get("model") or asked.get("name")
            return {"capabilities": ollama.get(name, []), **self.script.facts.get(name, {})}
        return None

    def _complete(self, connection: socket.socket, path: str, wire: str, head: str, body: bytes) -> bool:
        request = msgspec.json.decode(body)
        recorded = Recorded(path, _shown_key(head), request, time.monotonic_ns())
        self.requests.append(recorded)
        if refused := self.script.refusal(recorded.authorization, request.get("model")):
            _send_json(connection, refused[0], told_refused(wire, refused[1]))
            return True
        asked = as_chat(wire, request)
        step = self.script.answer(asked)
        try:
            is_whole = self._play(connection, step, asked, recorded, wire)
        except OSError:
            recorded.ended = "client_gone"
            raise
        recorded.ended = "done" if is_whole else "cut"
        return is_whole

    def _play(
        self,
        connection: socket.socket,
        step: Step,
        request: dict[str, Any],
        recorded: Recorded,
        wire: str,
    ) -> bool:
        """Send what `step` says; whether it was a whole response."""
        gevent.sleep(step.first_delay_ms / 1000)
        if step.hang:
            return _hang(connection)
        if step.status != 200:
            error = step.error if step.error is not None else {"message": f"scripted {step.status}"}
            headers = {} if step.retry_after is None else {"Retry-After": str(step.retry_after)}
            _send_json(connection, step.status, told_refused(wire, error), headers)
            return True
        kind = step.content_type or content_type(wire)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        before = head.encode()
        chunks = chunks_of(step, request, number=len(self.requests), wire=wire)
        for number, chunk in enumerate(chunks):
            if number == step.cut_after:
                connection.sendall(before)
                return False
            if number == step.hang_after:
                connection.sendall(before)
                return _hang(connection)
            if step.delay_ms:
                connection.sendall(before) if before else None
                before = b""
                gevent.sleep(step.delay_ms / 1000)
            is_last = number + 1 == len(chunks)
            recorded.last_byte_ns = time.monotonic_ns()
            recorded.chunks_ns.append(recorded.last_byte_ns)
            recorded.first_byte_ns = recorded.first_byte_ns or recorded.last_byte_ns
            connection.sendall(
                b"%s%x\r\n%s\r\n%s" % (before, len(chunk), chunk, b"0\r\n\r\n" if is_last else b"")
            )
            before = b""
        return True


def _shown_key(head: str) -> str:
    """The key of a request as a bearer token, however its wire carries it."""
    key = _header(head, "x-api-key")
    return f"Bearer {key}" if key else _header(head, "authorization")


def _hang(connection: socket.socket) -> bool:
    """Say nothing until the client goes."""
    while connection.recv(4096):
        pass
    raise ConnectionError("the client went away")


def _read_request(connection: socket.socket, rest: bytes) -> tuple[str, bytes, bytes]:
    """Head, body and what already came of the next request.

    Raises: EOFError when the client is done.
    """
    while b"\r\n\r\n" not in rest:
        rest += _received(connection)
        if len(rest) > _HEAD_LIMIT_BYTES and b"\r\n\r\n" not in rest[:_HEAD_LIMIT_BYTES]:
            raise EOFError
    head, _, rest = rest.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    size = int(_header(text, "content-length") or 0)
    parts = [rest]
    have = len(rest)
    while have < size:
        parts.append(_received(connection))
        have += len(parts[-1])
    whole = b"".join(parts)
    return text, whole[:size], whole[size:]


def _received(connection: socket.socket) -> bytes:
    data: bytes = connection.recv(65_536)
    if not data:
        raise EOFError
    return data


def _header(head: str, name: str) -> str:
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name:
            return value.strip()
    return ""


def _send_json(
    connection: socket.socket, status: int, value: object, headers: dict[str, str] | None = None
) -> None:
    body = msgspec.json.encode(value)
    lines = [
        f"HTTP/1.1 {status} Scripted",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    lines += [f"{name}: {text}" for name, text in (headers or {}).items()]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the script named on the command line until the process is ended."""
    parser = argparse.ArgumentParser(prog="fermix.testing.model_server", description=__doc__)
    parser.add_argument("--script", type=Path, help="JSON script; see fermix/testing/model_script.py")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0, help="with --text: wait before the answer")
    parser.add_argument("--text", default="ok", help="the answer when the script has none")
    parser.add_argument("--chunks", type=int, default=1)
    options = parser.parse_args(arguments)
    # What was asked is kept, so each collection would take longer and show in figures as the daemon's.
    gc.disable()
    script = read_script(options.script.read_bytes()) if options.script else Script()
    if not options.script:
        script.default = Step(say=options.text, first_delay_ms=options.delay_ms, chunks=options.chunks)
    server = ModelServer(script=script, port=options.port)
    server.start()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
