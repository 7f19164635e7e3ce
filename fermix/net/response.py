"""A response whose body is read piece by piece, each as it arrives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import BadStatusLine, RemoteDisconnected
from http.client import IncompleteRead as IncompleteBody
from types import TracebackType
from typing import TYPE_CHECKING

from fermix.errors import ConnectionLost, DeadlineExceeded, ResponseTooLarge
from fermix.net.interrupt import interruptible
from fermix.tasks import Cancel, Deadline, sleep, time_limit

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_PIECE_BYTES = 16_384
_PIECES_IN_A_ROW = 4
"""After so many the others get their turn: bytes that are already here never make us wait."""
_DRAIN_S = 0.005
_CAUSES = 8
_TOLD_CHARS = 200
_POOL = re.compile(r"^\w+\(host=[^)]*\): ")
"""How urllib3 begins what it says of a connection."""


class Response:
    """Status and headers are here; the body is still on its way. Use as a context manager."""

    def __init__(
        self,
        raw: BaseHTTPResponse,
        *,
        cancel: Cancel,
        deadline: Deadline,
        idle_timeout_s: float,
        limit_bytes: int,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.status = raw.status
        self.headers: Mapping[str, str] = raw.headers
        """Names compare without regard to case."""
        self._raw = raw
        self._cancel = cancel
        self._deadline = deadline
        self._idle_timeout_s = idle_timeout_s
        self._left_bytes = limit_bytes
        self._limit_bytes = limit_bytes
        self._is_at_end = False
        self._pieces = 0
        self._on_close = on_close

    def __enter__(self) -> Response:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def piece(self, idle_timeout_s: float | None = None) -> bytes:
        """The next bytes as soon as there are any; empty at the end of the body.

        Raises: Cancelled, DeadlineExceeded (silence for the idle timeout, or the whole took too
        long), ConnectionLost, ResponseTooLarge.
        """
        if self._is_at_end:
            return b""
        self._pieces += 1
        if self._pieces % _PIECES_IN_A_ROW == 0:
            sleep(0)
        idle_s = self._idle_timeout_s if idle_timeout_s is None else idle_timeout_s
        left_s = self._deadline.remaining_s()
        what = "The next part of the answer" if idle_s < left_s else "The whole answer"
        with interruptible(self._cancel, min(idle_s, left_s), what=what), translated():
            data = self._raw.read1(_PIECE_BYTES)
        self._is_at_end = not data
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise ResponseTooLarge(f"The answer is larger than {self._limit_bytes} bytes.")
        return data

    def pieces(self) -> Iterator[bytes]:
        """Every piece until the end of the body; raises as `piece`."""
        while data := self.piece():
            yield data

    def read_all(self) -> bytes:
        """The whole body; raises as `piece`."""
        return b"".join(self.pieces())

    def close(self) -> None:
        """Give the connection back when the body was read to its end, else end it.

        A body whose end is already here is read to it, which costs at most 5 ms and saves the
        next request a connection.
        """
        if not self._is_at_end and not self._cancel.is_set():
            with suppress(DeadlineExceeded, ConnectionLost), time_limit(_DRAIN_S, "The end"), translated():
                self._is_at_end = not self._raw.read1(_PIECE_BYTES)
        if self._is_at_end:
            self._raw.release_conn()
        else:
            self._raw.close()
        self._on_close()


@contextmanager
def translated() -> Iterator[None]:
    """urllib3's and the socket's errors while reading become ConnectionLost."""
    from urllib3.exceptions import HTTPError  # lazy: its package takes 130 ms to import

    try:
        yield
    except (HTTPError, OSError, ValueError) as error:
        raise ConnectionLost(
            f"The connection broke while the answer was read: {describe(error)}."
        ) from error


def describe(error: BaseException) -> str:
    """One short line about an error from below in a person's words, without names of classes."""
    from urllib3.exceptions import IncompleteRead  # lazy, as above

    for each in _causes(error):
        if isinstance(each, RemoteDisconnected):
            return "the server closed it without an answer"
        if isinstance(each, IncompleteRead | IncompleteBody):
            return "the server closed it before the end"
        if isinstance(each, BadStatusLine):
            return "the server does not speak HTTP"
        if isinstance(each, OSError) and each.strerror:
            return each.strerror.rstrip(".")[:_TOLD_CHARS]
    text = str(error.args[-1]) if error.args else ""
    return (_POOL.sub("", text) or type(error).__name__).strip().rstrip(".")[:_TOLD_CHARS]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those it was made of, the outermost first."""
    for _ in range(_CAUSES):
        yield error
        inner = (getattr(error, "reason", None), *reversed(error.args), error.__cause__, error.__context__)
        deeper = next((each for each in inner if isinstance(each, BaseException)), None)
        if deeper is None:
            return
        error = deeper
