"""Reads the log's files: its end, and what comes next."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

_CHUNK_BYTES = 64 * 1024
_POLL_S = 0.2


def tail_position(path: Path) -> int:
    """Where the next line will be written; 0 when there is no log."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def read_from(path: Path, position: int) -> list[str]:
    """The lines after `position`, or the whole file when it was rotated since."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(position if position <= size else 0)
            return _text(log.read(_CHUNK_BYTES * 4)).splitlines()
    except FileNotFoundError:
        return []


def last_lines(path: Path, count: int, *, end: int) -> list[str]:
    """The last `count` lines over the rotated files too, oldest first.

    end: where to stop in the newest file.
    Raises: FileNotFoundError when nothing was logged yet.
    """
    kept: deque[str] = deque()
    for lines in newest_first(path, end=end):
        kept.extendleft(reversed(deque(lines, maxlen=count - len(kept))))
        if len(kept) >= count:
            break
    return list(kept)


def newest_first(path: Path, *, end: int) -> Iterator[list[str]]:
    """The lines of the present file up to `end`, then those of each rotated one.

    Raises: FileNotFoundError when nothing was logged yet.
    """
    files = [path, *_rotated(path)]
    if not path.exists() and len(files) == 1:
        raise FileNotFoundError(2, "No such file", str(path))
    for each in files:
        with contextlib.suppress(FileNotFoundError):  # rotated away meanwhile
            yield list(_lines(each, end if each is path else None))


def follow(path: Path, position: int) -> Iterator[str | None]:
    """Every line written after `position`, for ever; None whenever there is none for the moment.

    Goes on in the new file after a rotation.
    """
    rest = b""
    while True:
        try:
            log = path.open("rb")
        except FileNotFoundError:
            time.sleep(_POLL_S)
            continue
        with log:
            log.seek(position)
            inode = os.fstat(log.fileno()).st_ino
            while True:
                data = log.read(_CHUNK_BYTES)
                if data:
                    *lines, rest = (rest + data).split(b"\n")
                    yield from map(_text, lines)
                    continue
                if _is_replaced(path, inode):
                    # What was written between our last read and the rotation is read before leaving.
                    *lines, rest = (rest + log.read()).split(b"\n")
                    yield from map(_text, lines)
                    break
                # Not by seeking to the end: what is written meanwhile would be passed over.
                if log.tell() > os.fstat(log.fileno()).st_size:  # cut to zero in place
                    log.seek(0)
                yield None
                time.sleep(_POLL_S)
        if rest:
            yield _text(rest)
        rest, position = b"", 0


def _is_replaced(path: Path, inode: int) -> bool:
    try:
        return path.stat().st_ino != inode
    except FileNotFoundError:
        return False  # between two names; the new file comes


def _rotated(path: Path) -> list[Path]:
    """fermix.log.1, fermix.log.2, … newest first."""
    numbered = [each for each in path.parent.glob(f"{path.name}.*") if each.suffix[1:].isdecimal()]
    return sorted(numbered, key=lambda each: int(each.suffix[1:]))


def _lines(path: Path, end: int | None) -> Iterator[str]:
    position = 0
    with path.open("rb") as log:
        for line in log:
            position += len(line)
            if end is not None and position > end:
                return
            yield _text(line.rstrip(b"\r\n"))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
