"""Whether some process holds a `flock` on a file, asked without touching the lock.

Taking it to find out, even for a moment, could make a daemon fail that starts in that moment.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def is_locked(path: Path) -> bool:
    """False also when there is no such file, or /proc cannot be read.

    Source: proc(5), /proc/locks: "1: FLOCK ADVISORY WRITE pid major:minor:inode start end". The
    device may be another there than stat says, so a doubtful line counts only for a file that is open.
    """
    try:
        found = path.stat()
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    places = [line.split()[-3].split(":") for line in lines if "FLOCK" in line and len(line.split()) >= 8]
    exact = [f"{os.major(found.st_dev):02x}", f"{os.minor(found.st_dev):02x}", str(found.st_ino)]
    if exact in places:
        return True
    return any(place[-1] == str(found.st_ino) for place in places) and bool(opened_by(path))


def opened_by(path: Path) -> list[int]:
    """The processes that have this file open, as far as we may look."""
    try:
        wanted = path.stat()
    except OSError:
        return []
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and _has_open(process / "fd", wanted):
            found.append(int(process.name))
    return sorted(found)


def _has_open(descriptors: Path, wanted: os.stat_result) -> bool:
    with suppress(OSError):  # gone, or another user's
        for each in descriptors.iterdir():
            with suppress(OSError):
                found = each.stat()
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    return True
    return False
