"""Serves the control socket: many requests per connection, each answered on its own.

A connection that is silent, slow, too greedy or talks nonsense costs a clear refusal and
nothing else; the others do not notice.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import msgspec
from gevent.event import Event
from gevent.lock import RLock

from fermix.errors import FermixError, OwnerError, ProtocolError
from fermix.ipc.frames import OLDEST_VERSION, VERSION, FrameReader, encode
from fermix.ipc.settings import ControlSettings
from fermix.tasks import Deadline, TaskGroup, sleep
from fermix.trust import Standing

log = logging.getLogger(__name__)

RECEIVE_BYTES = 65_536
SEND_TIMEOUT_S = 30.0
"""A client that takes nothing for this long is hung up on."""
ACCEPT_WAIT_S = 1.0
REQUESTS_PER_CONNECTION = 32
ID_LENGTH = 128
BUFFERED_LIMIT_BYTES = 8 * 1024 * 1024
"""Bytes of unfinished requests held over all connections."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as the kernel says (SO_PEERCRED, unix(7))."""

    pid: int
    uid: int
    standing: Standing | None
    """What a process may that the daemon itself started; None for anybody else's."""


class Call:
    """One request being answered."""

    def __init__(
        self, peer: Peer, send: Callable[[dict[str, object]], None], request_id: str | int
    ) -> None:
        self.peer = peer
        self._send = send
        self._id = request_id

    def event(self, seq: int, name: str, data: Mapping[str, object]) -> None:
        """Send an event on the way to the result."""
        self._send({"id": self._id, "event": {"seq": seq, "name": name, "data": data}})


@dataclass(frozen=True, slots=True)
class Method:
    """What a client may call: the shape of its params and what answers it."""

    params: type[msgspec.Struct]
    run: Callable[[Any, Call], Mapping[str, object]]


class Envelope(msgspec.Struct, frozen=True):
    """The outside of a request."""

    v: int
    id: Annotated[str, msgspec.Meta(max_length=ID_LENGTH)] | Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    """Chosen by the client; comes back with every answer."""
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(slots=True, eq=False)
class _Connection:
    """One client."""

    socket: socket.socket
    peer: Peer
    tasks: TaskGroup
    reader: FrameReader
    lock: RLock = field(default_factory=RLock)
    buffered: int = 0

    @property
    def is_idle(self) -> bool:
        return len(self.tasks) == 0

    def send(self, message: dict[str, object]) -> None:
        """Raises: OSError when the client is gone or takes nothing."""
        frame = encode(msgspec.json.encode(message))
        with self.lock:
            self.socket.settimeout(SEND_TIMEOUT_S)
            self.socket.sendall(frame)


class ControlServer:
    """Accepts clients on a listening unix socket; a supervisor's Child."""

    def __init__(
        self,
        listener: socket.socket,
        methods: Mapping[str, Method],
        *,
        settings: Callable[[], ControlSettings],
        standing_of: Callable[[int], Standing | None],
        redact: Callable[[str], str],
    ) -> None:
        """`settings` gives those that count now; a connection keeps the frame limit it began with.

        `standing_of`: what a process may that a turn of ours started; None for any other process.

        `redact` takes secrets out of what refusals say.
        """
        self._standing_of = standing_of
        self._redact = redact
        self._listener = listener
        self._methods = methods
        self._settings = settings
        self._connections: dict[_Connection, None] = {}
        self._tasks = TaskGroup("control")
        self._ended = Event()
        self._error: Exception | None = None

    def start(self) -> ControlServer:
        """Accept from now on."""
        self._tasks.start(self._accept, name="accept")
        return self

    def wait(self, timeout_s: float) -> bool:
        if not self._ended.wait(timeout_s):
            return False
        if self._error is not None:
            raise self._error
        return True

    def stop(self, timeout_s: float) -> None:
        """Hang up on everybody; the listener stays open, it is the arbiter's."""
        self._tasks.stop(timeout_s)
        for connection in list(self._connections):
            self._hang_up(connection)

    @property
    def clients(self) -> int:
        """Connections open now."""
        return len(self._connections)

    def _accept(self) -> None:
        self._listener.settimeout(ACCEPT_WAIT_S)
        try:
            while True:
                try:
                    client, _ = self._listener.accept()
                except TimeoutError:
                    continue
                except OSError as error:
                    if error.errno is None or self._listener.fileno() < 0:
                        raise
                    log.warning("Cannot accept a client: %s", error)
                    sleep(0.1)
                    continue
                self._tasks.start(partial(self._serve, client), name="client")
        except OSError as error:
            self._error = error
        finally:
            self._ended.set()

    def _serve(self, client: socket.socket) -> None:
        connection = _Connection(
            client,
            self._peer_of(client),
            TaskGroup("client"),
            FrameReader(self._settings().frame_limit_bytes),
        )
        is_full = len(self._connections) >= self._settings().connections
        self._connections[connection] = None
        try:
            if is_full and not self._shed(connection):
                raise ProtocolError("Too many clients, all of them busy; try again.", code="busy")
            if connection.peer.uid not in (os.getuid(), 0):
                raise ProtocolError("This socket serves its owner only.", code="not_owner")
            self._read(connection)
        except ProtocolError as error:
            self._refuse(connection, None, error)
        except OSError as error:
            log.debug("A client is gone: %s", error)
        finally:
            self._hang_up(connection)

    def _read(self, connection: _Connection) -> None:
        """Take requests until the client leaves. Raises: ProtocolError when its stream makes no sense."""
        whole_by: Deadline | None = Deadline.after(self._settings().request_timeout_s)
        while True:
            connection.socket.settimeout(None if whole_by is None else max(0.001, whole_by.remaining_s()))
            try:
                data = connection.socket.recv(RECEIVE_BYTES)
            except TimeoutError:
                if whole_by is None or not whole_by.is_over():
                    continue  # a send on this socket set a timeout of its own
                raise ProtocolError(
                    f"No whole request within {self._settings().request_timeout_s:g} s.",
                    code="request_timeout",
                ) from None
            if not data:
                return
            payloads = connection.reader.feed(data)
            for payload in payloads:
                self._take(connection, payload)
            self._account(connection, 0 if payloads else connection.buffered + len(data))
            if not connection.reader.is_inside_frame:
                whole_by = None
            elif payloads or whole_by is None:
                whole_by = Deadline.after(self._settings().request_timeout_s)

    def _account(self, connection: _Connection, buffered: int) -> None:
        """Note what a connection holds; too much over all is refused to the one that adds to it."""
        connection.buffered = buffered if connection.reader.is_inside_frame else 0
        if sum(other.buffered for other in self._connections) > BUFFERED_LIMIT_BYTES:
            raise ProtocolError("Too many large requests at once; try again.", code="busy")

    def _take(self, connection: _Connection, payload: bytes) -> None:
        try:
            request = msgspec.json.decode(payload, type=Envelope)
        except (msgspec.DecodeError, RecursionError) as error:
            self._refuse(
                connection,
                None,
                ProtocolError(f"Not a request: {_words(error)}.", code="invalid_request"),
            )
            return
        if len(connection.tasks) >= REQUESTS_PER_CONNECTION:
            busy = ProtocolError(
                f"{REQUESTS_PER_CONNECTION} requests are running on this connection.", code="busy"
            )
            self._refuse(connection, request.id, busy)
            return
        connection.tasks.start(partial(self._answer, connection, request), name="request")

    def _answer(self, connection: _Connection, request: Envelope) -> None:
        try:
            result = self._run(connection, request)
            connection.send({"id": request.id, "result": result})
        except FermixError as error:
            self._refuse(connection, request.id, error)
        except OSError as error:
            log.debug("A client is gone: %s", error)
            connection.socket.close()
        except Exception:
            # The boundary of a request: a fault in one method must not hang its client.
            log.exception("Method %r failed", request.method[:64])
            broken = OwnerError("The daemon failed inside; its log says why.", hint="fermix logs")
            self._refuse(connection, request.id, broken)

    def _run(self, connection: _Connection, request: Envelope) -> Mapping[str, object]:
        _check_version(request.v)
        method = self._methods.get(request.method)
        if method is None:
            raise ProtocolError(
                f"No method {request.method[:64]!r}. Available: {', '.join(sorted(self._methods))}.",
                code="method_unknown",
            )
        try:
            params = msgspec.json.decode(request.params, type=method.params)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProtocolError(f"{request.method}: {_words(error)}.", code="invalid_params") from error
        return method.run(params, Call(connection.peer, connection.send, request.id))

    def _refuse(self, connection: _Connection, request_id: str | int | None, error: FermixError) -> None:
        hint = self._redact(error.hint) if error.hint else None
        answer = {"code": error.code, "message": self._redact(error.message), "hint": hint}
        try:
            connection.send({"id": request_id, "error": answer})
        except OSError as gone:
            log.debug("A client is gone: %s", gone)

    def _peer_of(self, client: socket.socket) -> Peer:
        pid, uid, _ = struct.unpack(
            "3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        )
        return Peer(pid, uid, self._standing_of(pid))

    def _shed(self, newcomer: _Connection) -> bool:
        """Make room: hang up on the oldest client that waits for no answer; False when all do."""
        for connection in self._connections:
            if connection.is_idle and connection is not newcomer:
                del self._connections[connection]  # at once: the next newcomer is to find another one
                self._refuse(
                    connection, None, ProtocolError("Too many clients; you were idle.", code="busy")
                )
                self._hang_up(connection)
                return True
        return False

    def _hang_up(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)
        connection.tasks.stop(timeout_s=1.0)
        # shutdown wakes whoever waits on the socket; close alone would not
        try:
            connection.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            log.debug("A client had hung up already")
        connection.socket.close()


def _check_version(version: int) -> None:
    if version < OLDEST_VERSION:
        raise ProtocolError(
            f"The client speaks version {version}; this daemon serves {OLDEST_VERSION} to {VERSION}.",
            code="client_too_old",
            hint="Use the fermix that the daemon was started from.",
        )
    if version > VERSION:
        raise ProtocolError(
            f"The client speaks version {version}; this daemon serves {OLDEST_VERSION} to {VERSION}.",
            code="daemon_too_old",
            hint="fermix restart",
        )


def _words(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
