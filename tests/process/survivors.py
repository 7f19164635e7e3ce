"""Finds what is left of a test's processes, by a mark in their environment or command line."""

from __future__ import annotations

import os
import time
from pathlib import Path


def marked(mark: str) -> list[int]:
    """Living processes but this one that carry `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            is_zombie = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if mark.encode() in text and not is_zombie:
            found.append(int(entry.name))
    return found


def await_none(mark: str, timeout_s: float = 5.0) -> float:
    """Seconds until none was left. Raises: AssertionError naming those that stay."""
    start = time.monotonic()
    while left := marked(mark):
        passed = time.monotonic() - start
        if passed > timeout_s:
            lines = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[:120] for pid in left]
            raise AssertionError(f"{len(left)} processes are left after {passed:.1f} s: {lines}")
        time.sleep(0.02)
    return time.monotonic() - start


def await_some(mark: str, count: int, timeout_s: float = 10.0) -> list[int]:
    """The marked processes once there are at least `count`."""
    deadline = time.monotonic() + timeout_s
    while len(found := marked(mark)) < count:
        assert time.monotonic() < deadline, f"only {len(found)} of {count} processes came"
        time.sleep(0.02)
    return found
