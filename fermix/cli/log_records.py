"""Entries of the log: a line and what belongs to it, such as a stack, found by what they are about."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fermix.cli.log_file import follow, newest_first

LEVELS = ("debug", "info", "warning", "error", "critical")
MOST_LINES = 2000
"""Lines of one entry that are kept; a runaway stack is not worth the memory."""

_HEAD = re.compile(r"(\d{4}-\d\d-\d\dT[0-9:.]+Z) (\w+) +(\S+) \[(\d+)\] \[([^\]]*)\] ?(.*)", re.DOTALL)
"""Source: fermix.telemetry.lines.LineFormatter."""
_SPAN = re.compile(r"(\d{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the log."""

    lines: tuple[str, ...]
    time: str | None
    """UTC; None for lines that no event stands above, like the other fields."""
    level: str | None
    logger: str | None
    pid: int | None
    turn: str | None
    """None also where no turn was at work."""
    message: str

    def facts(self) -> dict[str, object]:
        """As JSON; `text` has the lines below the first one too."""
        text = "\n".join((self.message, *self.lines[1:]))
        return {
            "time": self.time,
            "level": self.level,
            "logger": self.logger,
            "pid": self.pid,
            "turn": self.turn,
            "text": text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries are shown; every one that is given must hold."""

    turn: str | None = None
    level: str | None = None
    """This one or worse."""
    text: str | None = None
    """Stands somewhere in the entry, in capitals or not."""
    since: str | None = None
    """Not older than this, as `Entry.time`."""

    def takes(self, entry: Entry) -> bool:
        """Whether the entry is one of them."""
        if self.turn is not None and self.turn not in entry.lines[0]:
            return False
        if self.level is not None and _rank(entry.level) < LEVELS.index(self.level):
            return False
        if self.since is not None and (entry.time is None or entry.time < self.since):
            return False
        return self.text is None or self.text.casefold() in "\n".join(entry.lines).casefold()


@dataclass(slots=True)
class _Gathering:
    """Lines until the next entry begins."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> Entry | None:
        """The entry that `line` ends by beginning another; None when it goes on."""
        ended = self.end() if _HEAD.match(line) else None
        if len(self.lines) < MOST_LINES:
            self.lines.append(line)
        return ended

    def end(self) -> Entry | None:
        lines, self.lines = tuple(self.lines), []
        return _entry(lines) if lines else None


def last_entries(path: Path, count: int | None, wanted: Wanted, *, end: int) -> list[Entry]:
    """The last `count` entries that are wanted, None means all, oldest first, over the rotated files too.

    Raises: FileNotFoundError when nothing was logged yet.
    """
    kept: deque[Entry] = deque()
    for lines in newest_first(path, end=end):
        room = None if count is None else count - len(kept)
        kept.extendleft(reversed(deque(filter(wanted.takes, _entries(lines)), maxlen=room)))
        if count is not None and len(kept) >= count:
            break
    return list(kept)


def following_entries(path: Path, position: int, wanted: Wanted) -> Iterator[Entry]:
    """Every wanted entry written after `position`, for ever."""
    return filter(wanted.takes, _entries(follow(path, position)))


def moment_before(span: str, now_s: float | None = None) -> str | None:
    """The time a span like `10m` or `2h` ago, as entries have it; None when it is no span."""
    found = _SPAN.fullmatch(span.strip())
    if found is None:
        return None
    then_s = (time.time() if now_s is None else now_s) - int(found[1]) * _SECONDS[found[2]]
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(max(0.0, then_s)))


def _entries(lines: Iterable[str | None]) -> Iterator[Entry]:
    """Whole entries; None among the lines says that what was written so far is whole."""
    gathering = _Gathering()
    for line in lines:
        ended = gathering.end() if line is None else gathering.add(line)
        if ended is not None:
            yield ended
    last = gathering.end()
    if last is not None:
        yield last


def _entry(lines: tuple[str, ...]) -> Entry:
    found = _HEAD.fullmatch(lines[0])
    if found is None:
        return Entry(lines, None, None, None, None, None, lines[0])
    moment, level, logger, pid, turn, message = found.groups()
    return Entry(
        lines, moment, level.lower(), logger, int(pid), None if turn in ("-", "") else turn, message
    )


def _rank(level: str | None) -> int:
    return LEVELS.index(level) if level in LEVELS else -1
