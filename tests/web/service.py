"""HTTP served in this process: the real server and application in front of a desk that a test leads."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gevent
from gevent.server import StreamServer
from gunicorn.app.base import BaseApplication

from fermix.auth.tokens import Tokens
from fermix.clock import SystemClock
from fermix.daemon.connections import Connections
from fermix.daemon.serverlog import ServerLog
from fermix.errors import NotReady, SessionUnknown, UsageError
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.watch import TurnLog
from fermix.ids import new_id
from fermix.messages import ChatMessage, ConversationKey, Inbound
from fermix.paths import Home
from fermix.secrets import Redactor
from fermix.tasks import ThreadPool
from fermix.trust import OPERATOR_ATTENDED
from fermix.web.app import build_app
from fermix.web.health import Check, DaemonState, HealthReport, PartHealth
from fermix.web.port import Words
from fermix.web.serving import Serving
from fermix.web.settings import HttpSettings
from fermix.web.tls import Tls

USAGE = {"input_tokens": 3, "output_tokens": 2, "cached_tokens": 0, "cost_micro_usd": 1234}


class Desk:
    """Accepts every message; the test publishes what happens in its turn."""

    def __init__(self) -> None:
        self.words: list[Words] = []
        self.senders: list[str] = []
        self.entries: dict[str, InboxEntry] = {}
        self.logs: dict[str, TurnLog] = {}
        self.is_delivered: list[str] = []
        self.cancelled: list[str] = []
        self.uploads: dict[str, bytes] = {}
        self.seeded: list[tuple[str, tuple[ChatMessage, ...]]] = []
        self.archived: list[str] = []
        self.script: list[tuple[str, dict[str, object]]] | None = [("text_delta", {"text": "Hello."})]
        """What each turn does at once, then it is done; None leaves it open."""

    def submit(self, words: Words, *, sender_id: str, at_most: object = None) -> InboxEntry:
        for entry in self.entries.values():
            if entry.inbound.platform_id == words.client_id:
                return entry
        self.words.append(words)
        self.senders.append(sender_id)
        turn_id = new_id(len(self.words))
        inbound = Inbound(
            key=ConversationKey("local", words.session),
            platform_id=words.client_id,
            sender_id=sender_id,
            text=words.text,
            received_ms=1,
        )
        entry = InboxEntry(turn_id, turn_id, inbound, OPERATOR_ATTENDED, "running", 1)
        self.entries[turn_id] = entry
        log = self.logs[turn_id] = TurnLog(turn_id)
        if self.script is not None:
            for name, data in self.script:
                log.publish(name, **data)
            self.finish(log)
        return entry

    def known(self, client_id: str) -> InboxEntry | None:
        found = (entry for entry in self.entries.values() if entry.inbound.platform_id == client_id)
        return next(found, None)

    def seed(self, session: str, messages: Sequence[ChatMessage]) -> None:
        self.seeded.append((session, tuple(messages)))

    def archive(self, session: str, *, is_archived: bool) -> None:
        self.archived.append(session)

    @property
    def last(self) -> TurnLog:
        """The log of the newest turn."""
        return list(self.logs.values())[-1]

    def finish(self, log: TurnLog, text: str = "Hello.") -> None:
        log.publish("done", status="completed", text=text, usage=USAGE)

    def turn(self, turn_id: str) -> InboxEntry:
        if turn_id not in self.entries:
            raise UsageError("No such turn.")
        return self.entries[turn_id]

    def events(self, turn_id: str, after_seq: int) -> TurnLog:
        return self.logs[turn_id]

    def delivered(self, turn_id: str) -> bool:
        self.is_delivered.append(turn_id)
        return True

    def cancel_turn(self, turn_id: str) -> bool:
        self.cancelled.append(turn_id)
        return True

    def cancel_session(self, session: str) -> int:
        self.cancelled.append(session)
        return 2

    def upload(self, blob_id: str | None, piece: bytes) -> tuple[str, int]:
        blob_id = blob_id or new_id(len(self.uploads) + 1)
        self.uploads[blob_id] = self.uploads.get(blob_id, b"") + piece
        return blob_id, len(self.uploads[blob_id])

    def sessions(self, limit: int, *, is_archived: bool = False) -> list[Any]:
        return []

    def session(self, session: str) -> Any:
        raise SessionUnknown(f"No session named {session!r}.", hint="fermix sessions list")


class Daemon:
    """A DaemonControl in a state the test chooses."""

    def __init__(self, home: Home) -> None:
        self.status = DaemonState.READY
        self.desk_ = Desk()
        self.redactor = Redactor()
        self.tokens_ = Tokens(home, clock=SystemClock(), pool=ThreadPool(2), know=self.redactor.add)

    def health(self) -> HealthReport:
        return HealthReport(
            status=self.status,
            version="1.2.3",
            uptime_ms=5,
            pid=7,
            children=(PartHealth("db", "running"), PartHealth("channels/x", "backoff", 3, "no route", 9)),
            checks=(Check("disk", True, "3 GB free"),),
        )

    def desk(self) -> Desk:
        if self.status is DaemonState.STARTING:
            raise NotReady("fermix is starting.", hint="fermix status")
        return self.desk_

    def is_of_a_turn(self, peer: tuple[str, int], own: tuple[str, int]) -> bool:
        return False

    def tokens(self) -> Tokens:
        if self.status is DaemonState.STARTING:
            raise NotReady("fermix is starting.", hint="fermix status")
        return self.tokens_


@dataclass
class Reply:
    """One answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code."""
        return str(self.json["error"]["code"])

    @property
    def events(self) -> list[tuple[str | None, str, Any]]:
        """Id, name and data of each server-sent event."""
        return list(parse_events(self.body.decode()))


@dataclass
class Service:
    """A running server and how to talk to it."""

    daemon: Daemon
    settings: HttpSettings
    port: int
    token: str
    home: Home
    links: list[socket.socket] = field(default_factory=list)

    @property
    def desk(self) -> Desk:
        return self.daemon.desk_

    def set(self, **changes: Any) -> None:
        """Change settings while it runs."""
        self.settings = replace(self.settings, **changes)

    def connect(self) -> socket.socket:
        link = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        self.links.append(link)
        return link

    def raw(self, request: bytes) -> bytes:
        """Send these bytes; everything that came back until the server hung up."""
        link = self.connect()
        with suppress(OSError):  # it may be refused before all was sent; the answer says why
            link.sendall(request)
        return read_all(link)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = "",
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request on a connection of its own; `token` empty is the right one, None sends none."""
        return parse(self.raw(self.request(method, path, body, token=token, headers=headers)))

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = "",
        headers: dict[str, str] | None = None,
        is_last: bool = True,
    ) -> bytes:
        """The bytes of a request."""
        sent = {"Host": f"127.0.0.1:{self.port}"}
        if is_last:
            sent["Connection"] = "close"
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        raw = b""
        if body is not None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent |= {"Content-Type": "application/json", "Content-Length": str(len(raw))}
        sent |= headers or {}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + raw

    def stream(self, body: object, **headers: str) -> socket.socket:
        """A connection on which the events of a message come."""
        link = self.connect()
        accept = {"Accept": "text/event-stream", **headers}
        link.sendall(self.request("POST", "/message", body, headers=accept))
        return link


def parse(raw: bytes) -> Reply:
    """An answer from its bytes, unchunked."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
    }
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join(chunks(body))
    return Reply(int(lines[0].split()[1]), headers, body)


def chunks(body: bytes) -> Iterator[bytes]:
    """The whole chunks of a chunked body."""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return
        yield rest[:length]
        body = rest[length + 2 :]


def parse_events(text: str) -> Iterator[tuple[str | None, str, Any]]:
    """Id, name and data of each whole event; comments are left out."""
    for block in text.split("\n\n")[:-1]:
        fields = dict(
            line.partition(": ")[::2] for line in block.split("\n") if line and not line.startswith(":")
        )
        if fields:
            yield fields.get("id"), fields["event"], json.loads(fields["data"])


def read_all(link: socket.socket) -> bytes:
    """Everything until the other side hangs up."""
    raw = b""
    with suppress(ConnectionResetError):
        while data := link.recv(65_536):
            raw += data
    return raw


def read_until(link: socket.socket, mark: bytes) -> bytes:
    """Everything up to and with `mark`, and what came along."""
    raw = b""
    while mark not in raw:
        data = link.recv(65_536)
        assert data, f"it ended before {mark!r}: {raw!r}"
        raw += data
    return raw


def until(is_so: Any, timeout_s: float = 10.0) -> None:
    """Wait for it."""
    with gevent.Timeout(timeout_s, AssertionError("it did not happen in time")):
        while not is_so():
            gevent.sleep(0.005)


class _Application(BaseApplication):
    """gunicorn's configuration as the arbiter sets it, as far as it matters here."""

    def load_config(self) -> None:
        values = {
            "limit_request_line": 4094,
            "limit_request_fields": 64,
            "forwarded_allow_ips": "",
            "proxy_allow_ips": "",
            "logger_class": ServerLog,
        }
        for name, value in values.items():
            self.cfg.set(name, value)


@contextmanager
def serving(root: Path, *, tls: Tls | None = None, **changes: Any) -> Iterator[Service]:
    """A server with these settings, ended afterwards."""
    root.chmod(0o700)
    home = Home(root)
    daemon = Daemon(home)
    daemon.tokens_.prepare()
    token = home.api_token.read_text().strip()
    service = Service(daemon, HttpSettings(**changes), 0, token, home)
    application = build_app(daemon, lambda: service.settings)
    server = Serving(application, config=_Application().cfg, settings=lambda: service.settings, tls=tls)
    listener = socket.create_server(("127.0.0.1", 0))
    service.port = listener.getsockname()[1]
    stream_server = StreamServer(
        listener,
        handle=lambda client, at: server.handle(listener, client, at),
        spawn=Connections(service.settings.connections),
    )
    stream_server.start()
    try:
        yield service
    finally:
        for link in service.links:
            link.close()
        stream_server.stop(timeout=1.0)
        daemon.tokens_.stop(1.0)
