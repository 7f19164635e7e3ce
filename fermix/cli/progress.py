"""How far a long piece of work is, for the person who waits: a bar, or a line now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque

from fermix.cli.terminal import has_cursor, one_line, paint, takes

_QUIET_S = 1.0
_FRAME_S = 0.1
_LINE_S = 10.0
_RATE_OVER_S = 10.0
_BAR_CELLS = 24


class ProgressBar:
    """Says nothing for a second; then a bar on a terminal, a line every 10 s anywhere else."""

    def __init__(self, what: str, *, is_silent: bool = False) -> None:
        self._what = what
        self._is_silent = is_silent
        self._began = time.monotonic()
        self._next = self._began + _QUIET_S
        self._step = ""
        self._seen: deque[tuple[float, int]] = deque()
        self._is_shown = False
        self._full, self._empty = ("█", "░") if takes(sys.stderr, "█░") else ("#", "-")

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """How many bytes are done, of how many; None when nobody knows."""
        now = time.monotonic()
        if step != self._step:
            self._step = step
            self._seen.clear()
        self._seen.append((now, done))
        while now - self._seen[0][0] > _RATE_OVER_S:
            self._seen.popleft()
        if self._is_silent or now < self._next:
            return
        told = f"{step} {self._what}: {_facts(done, total, self._rate())}"
        if not has_cursor(sys.stderr):
            self._next = now + _LINE_S
            print(f"fermix: {told}", file=sys.stderr, flush=True)
            return
        self._next = now + _FRAME_S
        bar = "" if not total else f"{self._bar(done / total)} "
        shown = one_line(f"{bar}{told}", shutil.get_terminal_size().columns - 1)
        self._is_shown = True
        sys.stderr.write("\r\x1b[2K" + paint(shown, "dim", sys.stderr))
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the bar away."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._is_shown = False

    def _rate(self) -> float:
        """Bytes a second, lately."""
        (began, first), (now, done) = self._seen[0], self._seen[-1]
        return (done - first) / (now - began) if now > began else 0.0

    def _bar(self, share: float) -> str:
        cells = round(_BAR_CELLS * min(1.0, share))
        return self._full * cells + self._empty * (_BAR_CELLS - cells)


def size_text(size_bytes: int) -> str:
    """12.3 MB, 4.56 GB."""
    if size_bytes >= 1_000_000_000:
        return f"{size_bytes / 1_000_000_000:.2f} GB"
    return f"{size_bytes / 1_000_000:.1f} MB"


def _facts(done: int, total: int | None, rate: float) -> str:
    words = size_text(done) if total is None else f"{size_text(done)} of {size_text(total)}"
    if total:
        words += f" ({done * 100 // total} %)"
    if rate > 0:
        words += f", {size_text(int(rate))}/s"
        if total and done < total:
            left_s = int((total - done) / rate) + 1
            words += f", {left_s // 60}:{left_s % 60:02d} left"
    return words
