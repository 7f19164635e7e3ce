"""What a client is told when it gets no answer: one shape, one table from errors to status codes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fermix.errors import (
    ClientIdTaken,
    DeadlineExceeded,
    Draining,
    FermixError,
    HomeUnsafe,
    NotReady,
    ProtocolError,
    QueueFull,
    SessionBusy,
    SessionUnknown,
    StoreError,
    ToolDenied,
    UploadUnknown,
    UsageError,
)
from fermix.telemetry.lines import redacted

RETRY_S = 1
"""When to try again what is refused for a moment only."""


class ErrorDetail(msgspec.Struct):
    """Why a request was refused."""

    code: str
    """Stable; made for programs."""
    message: str
    """What happened, then what was expected."""
    hint: str | None = None
    """What repairs it; null when nothing is known to."""


class ErrorBody(msgspec.Struct):
    """Every refusal."""

    error: ErrorDetail


class Refused(FermixError):
    """A request that is not served, with the status code that says so."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.headers: Mapping[str, str] = headers or {}


_STATUS: tuple[tuple[type[FermixError], int], ...] = (
    (SessionUnknown, 404),
    (UploadUnknown, 404),
    (ClientIdTaken, 409),
    (SessionBusy, 409),
    (UsageError, 400),
    (ProtocolError, 400),
    (ToolDenied, 403),
    (QueueFull, 429),
    (NotReady, 503),
    (Draining, 503),
    (StoreError, 503),
    (DeadlineExceeded, 503),
    (HomeUnsafe, 500),
)


def status_of(error: FermixError) -> int:
    """The status code for an error; 500 for what no client could have caused or cured."""
    if isinstance(error, Refused):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def headers_of(error: FermixError) -> dict[str, str]:
    """What goes with it: when to try again, and which way of proving oneself is known."""
    headers = dict(error.headers) if isinstance(error, Refused) else {}
    status = status_of(error)
    if status in (429, 503):
        headers.setdefault("Retry-After", str(RETRY_S))
    if status == 401:
        headers.setdefault("WWW-Authenticate", 'Bearer realm="fermix"')
    return headers


def body_of(error: FermixError) -> ErrorBody:
    """What is said, without any secret the daemon knows."""
    hint = redacted(error.hint) if error.hint else None
    return ErrorBody(ErrorDetail(error.code, redacted(error.message), hint))
