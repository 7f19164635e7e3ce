"""A sign of life on stderr for a person who has to wait."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

from fermix.cli.terminal import has_cursor, one_line, paint, takes
from fermix.errors import DeadlineExceeded
from fermix.ipc.client import Connection, Result

_QUIET_S = 1.0
_FRAME_S = 0.1
_PATIENCE_S = 300.0


class Waiting:
    """Says nothing for a second, then a spinner on a terminal, one line anywhere else."""

    def __init__(self, what: str, *, quiet_s: float = _QUIET_S, is_silent: bool = False) -> None:
        self.what = what
        self._began = time.monotonic()
        self._quiet_s = quiet_s
        self._is_silent = is_silent
        self._is_shown = False
        self._next_frame = 0.0
        self._frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if takes(sys.stderr, "⠋") else "|/-\\"
        self._count = 0

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def tick(self) -> None:
        """Call it while waiting, as often as you like."""
        now = time.monotonic()
        if self._is_silent or now - self._began < self._quiet_s:
            return
        if not has_cursor(sys.stderr):
            if not self._is_shown:
                self._is_shown = True
                print(f"fermix: {self.what} ...", file=sys.stderr, flush=True)
            return
        if now < self._next_frame:
            return
        self._next_frame = now + _FRAME_S
        self._count += 1
        frame = self._frames[self._count % len(self._frames)]
        self._is_shown = True
        told = one_line(
            f"{frame} {self.what} {now - self._began:.0f} s", shutil.get_terminal_size().columns - 1
        )
        sys.stderr.write("\r\x1b[2K" + paint(told, "dim", sys.stderr))
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the spinner away; a later `tick` shows it again."""
        if self._is_shown and has_cursor(sys.stderr):
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._is_shown = False

    def restart(self, what: str) -> None:
        """Wait for something else from now on."""
        self.clear()
        self.what = what
        self._began = time.monotonic()


def patiently(
    connection: Connection,
    method: str,
    params: dict[str, Any],
    *,
    waiting: Waiting,
    timeout_s: float = _PATIENCE_S,
) -> dict[str, Any]:
    """As `Connection.call`, with a sign of life for the person who waits."""
    stream = connection.stream(method, params, timeout_s)
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        answer = stream.read(_FRAME_S)
        if isinstance(answer, Result):
            waiting.clear()
            return answer.data
        waiting.tick()
    raise DeadlineExceeded(
        f"The daemon did not answer {method!r} within {timeout_s:.3g} s.", hint="fermix logs -n 20"
    )
