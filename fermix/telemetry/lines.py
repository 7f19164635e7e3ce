"""One log record as one line, with its turn, secrets redacted and control characters escaped."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

from fermix.events import turn_id

_LONGEST_TEXT = 8_192
"""Characters of one message; what hostile input can put into one line of the log."""

_redactions: list[Callable[[str], str]] = []


def set_redaction(redact: Callable[[str], str] | None) -> None:
    """Pass every later line, and `redacted`, through `redact`. Called once, by the composition root."""
    _redactions[:] = [] if redact is None else [redact]


def redacted(text: str) -> str:
    """The text without any secret the daemon knows."""
    for redact in _redactions:
        try:
            text = redact(text)
        except Exception:  # the boundary: a line that may hold a secret is better lost than written
            return "(withheld: redaction failed)"
    return text


def escaped(text: str) -> str:
    """The text with line ends and control characters made visible, so that one event stays one line."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text
    )


class LineFormatter(logging.Formatter):
    """`2026-11-30T18:05:00.123Z INFO    fermix.daemon.worker [4711] [-] text`, then a traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
        except Exception:  # the boundary: a wrong format string in a log call is no reason to fail
            text = f"{record.msg} {record.args!r}"
        if len(text) > _LONGEST_TEXT:
            text = f"{text[:_LONGEST_TEXT]} ... ({len(text) - _LONGEST_TEXT} characters more)"
        line = (
            f"{_utc(record.created)} {record.levelname:<7} {record.name} [{os.getpid()}] "
            f"[{turn_id.get()}] {escaped(text)}"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        block = getattr(record, "block", None)  # many lines of our own making, given as `extra`
        if block:
            line += f"\n{block}"
        return redacted(line)


def _utc(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds * 1000) % 1000:03d}Z"
