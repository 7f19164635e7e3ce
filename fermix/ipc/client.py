"""The client's end of the control socket: ask once, or follow a stream of events.

Only the standard library: this is what `fermix status` waits for.
"""

from __future__ import annotations

import errno
import json
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fermix.errors import (
    DaemonLost,
    DeadlineExceeded,
    FermixError,
    NotRunning,
    OwnerError,
    ProtocolError,
    exit_status_of,
)
from fermix.ipc.address import socket_address
from fermix.ipc.frames import VERSION, FrameReader, encode

_RECEIVE_BYTES = 64 * 1024
_VERSION_CODES = ("daemon_too_old", "client_too_old")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened before the result."""

    seq: int
    """Grows within a turn; what `resume` counts by."""
    name: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a stream that went well."""

    data: dict[str, Any]


def open_connection(path: Path, *, timeout_s: float = 5.0) -> Connection:
    """A connection to the daemon that listens on `path`.

    Raises: NotRunning when nothing listens there, DeadlineExceeded when its backlog stays
    full, OwnerError when the socket may not be used.
    """
    deadline = time.monotonic() + timeout_s
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(timeout_s)
        with socket_address(path) as address:
            _connect(link, address, deadline)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as exc:
        link.close()
        raise NotRunning("The daemon is not running.", hint="fermix start") from exc
    except OSError as exc:
        link.close()
        hint = "set FERMIX_HOME to a folder of yours" if isinstance(exc, PermissionError) else None
        raise OwnerError(f"The socket '{path}' cannot be used: {exc.strerror or exc}.", hint=hint) from exc
    except BaseException:
        link.close()
        raise
    return Connection(link)


def _connect(link: socket.socket, address: str, deadline: float) -> None:
    """Connect, waiting while the backlog is full (a Unix socket then says "try again" at once)."""
    while True:
        try:
            link.connect(address)
            return
        except (BlockingIOError, TimeoutError) as exc:
            if time.monotonic() >= deadline:
                raise DeadlineExceeded(
                    "The daemon takes no more connections.", hint="fermix restart"
                ) from exc
            time.sleep(0.02)


class Connection:
    """One connection; requests on it are answered one after the other."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._frames = FrameReader()
        self._payloads: deque[bytes] = deque()
        self._last_id = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; the daemon goes on with what it was asked."""
        self._link.close()

    def peer_pid(self) -> int:
        """The process that listens on the socket, as the kernel knows it."""
        size = struct.calcsize("3i")
        credentials = self._link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", credentials)[0])

    def call(self, method: str, params: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """The result of `method`; its events, if it has any, are passed over.

        Raises: what the daemon answered (code, message, hint), DeadlineExceeded, DaemonLost,
        ProtocolError.
        """
        stream = self.stream(method, params, timeout_s)
        deadline = time.monotonic() + timeout_s
        while True:
            answer = stream.read(deadline - time.monotonic())
            if answer is None:
                raise _silence(method, timeout_s)
            if isinstance(answer, Result):
                return answer.data

    def stream(self, method: str, params: dict[str, Any], timeout_s: float) -> Stream:
        """Ask `method` and follow its answers; `timeout_s` is the longest silence when iterated.

        Raises: ProtocolError when the request is too large, DeadlineExceeded when the daemon
        does not take it.
        """
        self._last_id += 1
        request = {"v": VERSION, "id": self._last_id, "method": method, "params": params}
        self._send(
            encode(json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")), method, timeout_s
        )
        return Stream(self, self._last_id, method, timeout_s)

    def _send(self, frame: bytes, method: str, timeout_s: float) -> None:
        self._link.settimeout(max(timeout_s, 0.01))
        try:
            self._link.sendall(frame)
        except TimeoutError as exc:
            raise _silence(method, timeout_s) from exc
        except OSError as exc:
            # A daemon that refuses a connection answers and hangs up: its reason is still to be read.
            if exc.errno not in (errno.EPIPE, errno.ECONNRESET):
                raise _lost() from exc

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next reply to any request; None when none came within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not self._payloads:
            ready, _, _ = select.select([self._link], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            try:
                data = self._link.recv(_RECEIVE_BYTES)
            except OSError as exc:
                raise _lost() from exc
            if not data:
                raise _lost()
            self._payloads.extend(self._frames.feed(data))
        return _decoded(self._payloads.popleft())


class Stream:
    """The answers to one request: any number of events, then one result."""

    def __init__(self, connection: Connection, request_id: int, method: str, silence_s: float) -> None:
        self._connection = connection
        self._request_id = request_id
        self._method = method
        self._silence_s = silence_s

    def __iter__(self) -> Iterator[Event | Result]:
        """Every event, then the result.

        Raises: as `read`, and DeadlineExceeded after too long a silence.
        """
        while True:
            answer = self.read(self._silence_s)
            if answer is None:
                raise _silence(self._method, self._silence_s)
            yield answer
            if isinstance(answer, Result):
                return

    def read(self, timeout_s: float) -> Event | Result | None:
        """The next answer; None when none came within `timeout_s`.

        Raises: what the daemon answered, DaemonLost, ProtocolError.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            reply = self._connection.receive(max(0.0, deadline - time.monotonic()))
            if reply is None:
                return None
            # An id of null answers a request the daemon could not read at all.
            if reply.get("id") not in (self._request_id, None):
                continue
            answer = _answer(reply)
            if answer is not None:
                return answer


def _decoded(payload: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(payload)
    except (ValueError, RecursionError) as exc:
        raise ProtocolError("The daemon sent a reply that is not JSON.", hint="fermix restart") from exc
    if not isinstance(reply, dict):
        raise ProtocolError(
            f"The daemon sent {type(reply).__name__!r}; expected an object.", hint="fermix restart"
        )
    return reply


def _answer(reply: dict[str, Any]) -> Event | Result | None:
    """What a reply says; None for a kind this client does not know.

    Raises: the daemon's error, ProtocolError when it cannot be read.
    """
    if "error" in reply:
        raise _remote_error(reply["error"])
    if "result" in reply:
        return Result(_object(reply["result"], "result"))
    if "event" in reply:
        event = _object(reply["event"], "event")
        seq, name = event.get("seq"), event.get("name")
        if not isinstance(seq, int) or not isinstance(name, str):
            raise ProtocolError("The daemon sent an event without 'seq' or 'name'.", hint="fermix restart")
        return Event(seq, name, _object(event.get("data") or {}, "data"))
    return None


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError(
            f"The daemon sent a {name!r} that is {type(value).__name__!r}; expected an object.",
            hint="fermix restart",
        )
    return value


def _remote_error(error: object) -> FermixError:
    if not isinstance(error, dict):
        return ProtocolError("The daemon sent an error without a code.", hint="fermix restart")
    code, message, hint = error.get("code"), error.get("message"), error.get("hint")
    told = OwnerError(str(message or "The daemon refused."), hint=str(hint) if hint else None)
    told.code = str(code or "failed")
    told.exit_status = exit_status_of(told.code)
    if told.code in _VERSION_CODES and told.hint is None:
        told.hint = "fermix restart"
    return told


def _lost() -> DaemonLost:
    return DaemonLost("The daemon went away before it had answered.", hint="fermix logs -n 20")


def _silence(method: str, timeout_s: float) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"The daemon did not answer {method!r} within {timeout_s:.3g} s.", hint="fermix logs -n 20"
    )
