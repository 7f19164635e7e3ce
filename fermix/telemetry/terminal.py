"""What the daemon says on stderr, to a person if one is there."""

from __future__ import annotations

import contextlib
import logging
import os
import sys

from fermix.telemetry.lines import LineFormatter


def occupy_standard_descriptors() -> None:
    """Lead closed ones of 0, 1, 2 to /dev/null, or the next files opened would be taken for them."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def is_watched() -> bool:
    """Whether stderr is a terminal."""
    try:
        return os.isatty(2)
    except OSError:
        return False


def tell(message: str, hint: str | None = None) -> None:
    """One message to whoever started the daemon; lost without a trace when nobody can read it."""
    # Python has no sys.stderr at all when it was closed at start.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{message}\n" + (f"  {hint}\n" if hint else ""))
        sys.stderr.flush()


class Terminal(logging.Handler):
    """Shows log lines to the person who runs the daemon in the foreground."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter())

    def handle(self, record: logging.LogRecord) -> bool:
        tell(self.format(record))
        return True
