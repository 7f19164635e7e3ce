"""Reads a request's body within its limits of size, time, depth and kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
from gunicorn.http.errors import NoMoreData, ParseException

from fermix.errors import DeadlineExceeded
from fermix.tasks import Deadline, time_limit
from fermix.web.refusals import Refused

PIECE_BYTES = 65_536


class Source(Protocol):
    """What WSGI calls `wsgi.input`."""

    def read(self, size: int, /) -> bytes: ...


class Body:
    """A body that has not been read yet; nothing of one that is refused is."""

    def __init__(self, source: Source, *, length: int | None, limit_bytes: int, deadline: Deadline) -> None:
        """`length` None: it comes in chunks, and only reading tells how long it is."""
        self._source = source
        self._length = length
        self._limit_bytes = limit_bytes
        self._deadline = deadline

    def pieces(self, size: int = PIECE_BYTES) -> Iterator[bytes]:
        """The body in pieces of `size` bytes, the last one shorter.

        Raises: Refused when it is too long, too slow or malformed.
        """
        if self._length is not None and self._length > self._limit_bytes:
            raise self._too_large()
        total = 0
        while piece := self._read(size):
            total += len(piece)
            if total > self._limit_bytes:
                raise self._too_large()
            yield piece
        if self._length is not None and total != self._length:
            raise _gone()

    def whole(self) -> bytes:
        """All of it. Raises: as `pieces`."""
        return b"".join(self.pieces())

    def _read(self, size: int) -> bytes:
        try:
            with time_limit(max(0.001, self._deadline.remaining_s()), "The body"):
                return self._source.read(size)
        except (DeadlineExceeded, TimeoutError) as error:
            raise Refused(408, "request_timeout", "The request's body did not come in time.") from error
        except NoMoreData as error:
            raise _gone() from error
        except ParseException as error:
            raise Refused(400, "body_invalid", f"The body's framing is broken: {error}"[:300]) from error
        except OSError as error:
            raise _gone() from error

    def _too_large(self) -> Refused:
        return Refused(413, "body_too_large", f"The body is longer than {self._limit_bytes} bytes.")


def decode(raw: bytes, kind: type[msgspec.Struct]) -> Any:  # Any: a value of `kind`
    """The JSON body as a checked value. Raises: Refused naming what is wrong and where."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(400, "body_invalid", f"The body is not as expected: {str(error)[:300]}.") from error
    except RecursionError as error:
        raise Refused(400, "json_invalid", "The body's JSON is nested too deeply.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, "json_invalid", f"The body is no JSON: {str(error)[:300]}.") from error


def check_json(content_type: str) -> None:
    """Raises: Refused for any content type but JSON: pages of other sites can send those unasked."""
    kind, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Refused(
            415,
            "content_type_refused",
            f"The content type is {content_type[:80]!r}. Expected application/json.",
        )


def length_of(environ: dict[str, Any]) -> int | None:
    """How long the body says it is; None when it comes in chunks. Raises: Refused when it says nothing."""
    if environ.get("HTTP_TRANSFER_ENCODING"):
        return None
    text = environ.get("CONTENT_LENGTH") or ""
    if not text.isascii() or not text.isdigit():
        raise Refused(411, "length_required", "The request has no body; expected one with its length.")
    return int(text[:20])


def _gone() -> Refused:
    return Refused(400, "body_cut", "The body ended before its announced length.")
