"""What a route is: everything that is said about one in one place, for serving and for describing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec

from fermix.auth.tokens import Grant, Tokens
from fermix.errors import FermixError
from fermix.web.bodies import Body
from fermix.web.health import HealthReport
from fermix.web.link import Link
from fermix.web.port import DaemonControl, DeskPort
from fermix.web.refusals import ErrorBody, Refused, body_of
from fermix.web.settings import HttpSettings
from fermix.web.slots import Slot, Slots

JSON = "application/json"
EVENTS = "text/event-stream"
BYTES = "application/octet-stream"


class NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A route that takes no query parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that was let in, with everything a route needs to answer it."""

    control: DaemonControl
    settings: HttpSettings
    path: Mapping[str, str]
    """The variable parts of the path, decoded."""
    query: Any
    """The route's `query`, decoded and checked."""
    body: Any
    """The route's `request`, decoded and checked; None when it takes none."""
    raw: Body
    """The body as it comes, for routes that take bytes."""
    headers: Mapping[str, str]
    """By lower-case name."""
    grant: Grant | None
    """Whose token came along; None on an open route without one."""
    link: Link
    """The connection: whether the client is still there, and what to do once it has the answer."""
    slots: Slots

    def desk(self) -> DeskPort:
        """Turns and sessions. Raises: NotReady while the daemon starts."""
        return self.control.desk()

    def health(self) -> HealthReport:
        return self.control.health()

    def slot(self) -> Slot:
        """The right to wait for a turn; to be freed. Raises: Refused when too many do."""
        return Slot(self.slots, self.settings.streams)

    def wants_events(self) -> bool:
        """Whether the client asked for server-sent events."""
        kinds = (kind.partition(";") for kind in self.headers.get("accept", "").split(","))
        return any(name.strip().lower() == EVENTS and rest.strip() != "q=0" for name, _, rest in kinds)

    def check(self) -> None:
        """To be asked again and again while an answer takes time.

        Raises: Refused when the token was taken back or the client has gone.
        """
        if self.grant is not None and not self.tokens().counts(self.grant):
            raise Refused(401, "token_revoked", "This token was revoked.", hint="fermix tokens create NAME")
        if not self.link.is_there():
            raise Refused(400, "client_gone", "The client has closed its connection.")

    def tokens(self) -> Tokens:
        return self.control.tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer with more than a body."""

    body: object
    """A struct that becomes JSON, or bytes that are sent as they are."""
    status: int = 200
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class Stream:
    """Pieces sent as they come; closed however it ends."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        *,
        media_type: str = EVENTS,
        on_close: Callable[[], None] = lambda: None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.media_type = media_type
        self.headers: Mapping[str, str] = headers or {}
        self._pieces = pieces
        self._on_close = on_close

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        """Let go of everything; harmless when done twice."""
        on_close, self._on_close = self._on_close, lambda: None
        close = getattr(self._pieces, "close", None)
        try:
            if close is not None:
                close()
        finally:
            on_close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A request header, for the description."""

    name: str
    meaning: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path."""

    method: str
    path: str
    """`/sessions/{name}/messages`; a part in braces takes one whole segment, decoded."""
    summary: str
    answer: Callable[[Call], object]
    """Gives a struct (sent as JSON with 200), an `Answer` or a `Stream`; raises FermixError to refuse."""
    about: str = ""
    """What the description says beyond the summary."""
    query: type[msgspec.Struct] = NoQuery
    """One field per parameter."""
    headers: tuple[Header, ...] = ()
    """The request headers of its own that it reads."""
    request: type[msgspec.Struct] | None = None
    """The JSON body; None when there is none."""
    takes_bytes: bool = False
    """The body is a file, read through `call.raw`."""
    response: type[msgspec.Struct] | None = None
    """The JSON of 200; None when it is something else."""
    media_types: tuple[str, ...] = (JSON,)
    """What 200 may be."""
    errors: tuple[int, ...] = ()
    """Status codes of its refusals besides those every route shares."""
    needs_token: bool = True
    tag: str = ""
    """What it is listed under in the description."""
    body_limit: Callable[[HttpSettings], int] = lambda settings: settings.body_limit_bytes
    """Most bytes its body may have."""
    shape_error: Callable[[FermixError], object] = body_of
    """What a refusal's JSON looks like."""
    error: type[msgspec.Struct] = ErrorBody
    """The same as a type, for the description."""

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """The variable parts of a path split at `/`; None when it is not this route's."""
        own = self.path.split("/")[1:]
        if len(own) != len(segments):
            return None
        found: dict[str, str] = {}
        for mine, given in zip(own, segments, strict=True):
            if mine.startswith("{"):
                if not given:
                    return None
                found[mine[1:-1]] = given
            elif mine != given:
                return None
        return found


def segments_of(raw_path: str) -> list[str]:
    """The path's parts, each decoded by itself, so that a name may hold an encoded `/`.

    Raises: Refused when it is no path or not UTF-8.
    """
    if not raw_path.startswith("/"):
        raise Refused(400, "path_invalid", "The request names no path; expected one that begins with '/'.")
    try:
        return [unquote(each, errors="strict") for each in raw_path[1:].split("/")]
    except UnicodeDecodeError as error:
        raise Refused(400, "path_invalid", "The path is not UTF-8 after percent-decoding.") from error


def find_route(
    routes: Iterable[Route], method: str, segments: list[str]
) -> tuple[Route, dict[str, str]] | frozenset[str]:
    """The route and the variable parts of its path, or the methods this path has (none: no such path)."""
    allowed = set()
    for route in routes:
        found = route.match(segments)
        if found is None:
            continue
        if route.method == method:
            return route, found
        allowed.add(route.method)
    return frozenset(allowed)
