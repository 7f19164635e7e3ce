"""Writes and removes the files of a service so that a kill at any moment leaves a whole file or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def make_folders(folder: Path, mode: int) -> tuple[str, ...]:
    """Make a folder and the missing ones above it; those that were made, the outermost first."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=mode, exist_ok=True)
    return tuple(str(each) for each in reversed(missing))


def write_whole(path: Path, text: str, mode: int) -> None:
    """Put a file with this text in the place of whatever is there.

    Raises: OSError; the old file is then as it was.
    """
    fresh = _fresh(path)
    fresh.unlink(missing_ok=True)  # of an install that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(fresh, flags, mode)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="\n") as file:
            os.fchmod(fd, mode)
            file.write(text)
            file.flush()
            os.fsync(fd)
        fresh.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def write_link(path: Path, target: Path) -> None:
    """Have `path` lead to `target`."""
    if path.is_symlink() and path.readlink() == target:
        return
    fresh = _fresh(path)
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(path)


def remove(path: Path) -> bool:
    """Remove a file or link, and what a killed write left beside it; whether it was there."""
    _fresh(path).unlink(missing_ok=True)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def remove_empty(folders: Iterable[str]) -> None:
    """Remove those of the folders that nothing is in any more, the innermost first."""
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):  # somebody uses it, or it is gone
            Path(folder).rmdir()


def _fresh(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
