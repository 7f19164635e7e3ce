"""A sign of life on stderr for a person who has to wait."""

from __future__ import annotations

import shutil
import sys
import time

from fermix.cli.terminal import has_cursor, one_line, paint, takes

_QUIET_S = 1.0
_FRAME_S = 0.1


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
