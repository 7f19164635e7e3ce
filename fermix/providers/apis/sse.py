"""Server-sent events from bytes, as they arrive.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
(line ends CR, LF or CRLF; data lines joined by LF; comments and events without data are skipped).
"""

from __future__ import annotations

from dataclasses import dataclass

from fermix.errors import Unreadable
from fermix.providers.apis.wire import EVENT_LIMIT_BYTES

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event that carries data."""

    name: str
    """Empty when the stream did not name it."""
    data: bytes


class SseParser:
    """Feed it pieces cut anywhere, also inside a character; it works on bytes only."""

    def __init__(self, *, limit_bytes: int = EVENT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = ""
        self._skips_line_feed = False
        self._is_at_start = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes.

        Raises: Unreadable when one event is larger than the limit.
        """
        if not data:
            return []
        if self._skips_line_feed and data.startswith(b"\n"):
            data = data[1:]
        self._skips_line_feed = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        events: list[SseEvent] = []
        if lines and self._rest:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest, self._rest_bytes = [], 0
        for line in lines:
            if event := self._line(line):
                events.append(event)
        if rest:
            self._rest.append(rest)
            self._rest_bytes += len(rest)
        if self._rest_bytes + self._data_bytes > self._limit_bytes:
            raise Unreadable(f"An event of the stream is larger than {self._limit_bytes} bytes.")
        return events

    def end(self) -> list[SseEvent]:
        """The last event of a body that ended without the blank line behind it."""
        return self.feed(b"\n\n")

    def _line(self, line: bytes) -> SseEvent | None:
        if self._is_at_start:
            self._is_at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")[:100]
        return None

    def _dispatch(self) -> SseEvent | None:
        event = SseEvent(self._name, b"\n".join(self._data)) if self._data else None
        self._data, self._data_bytes, self._name = [], 0, ""
        return event
