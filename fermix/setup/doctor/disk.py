"""Room on the disk of the home: bytes, and files that may still be made."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("disk")
NEEDED_BYTES = 16_000_000
"""Below this the log of writes and one rotation of the log file no longer fit."""
WARNED_BYTES = 200_000_000
NEEDED_FILES = 100
WARNED_FILES = 1000
MB = 1_000_000


def look(scene: Scene) -> list[Finding]:
    """How much is left where the home lies, or would lie."""
    place = _existing(scene.home.root)
    disk = os.statvfs(place)
    free_bytes, is_counted = disk.f_bavail * disk.f_frsize, disk.f_files > 0
    quoted = shlex.quote(str(place))
    if disk.f_flag & os.ST_RDONLY:
        return [TOPIC.fail(f"The disk of '{place}' is read-only.", f"findmnt -T {quoted}")]
    if not os.access(place, os.W_OK | os.X_OK):
        return [TOPIC.fail(f"You cannot write in '{place}'.", f"ls -ld {quoted}")]
    findings: list[Finding] = []
    if free_bytes < WARNED_BYTES:
        say = TOPIC.fail if free_bytes < NEEDED_BYTES else TOPIC.warn
        findings.append(
            say(
                f"{_size(free_bytes)} are left on the disk of '{place}'; "
                f"fermix needs {_size(NEEDED_BYTES)} and should have {_size(WARNED_BYTES)}.",
                f"df -h {quoted}; du -xh -d 2 {quoted} | sort -h | tail",
            )
        )
    if is_counted and disk.f_favail < WARNED_FILES:
        say = TOPIC.fail if disk.f_favail < NEEDED_FILES else TOPIC.warn
        findings.append(
            say(f"Only {disk.f_favail} more files can be made on the disk of '{place}'.", f"df -i {quoted}")
        )
    return findings or [TOPIC.ok(f"{_size(free_bytes)} are left on the disk of '{place}'.")]


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


def _size(count: int) -> str:
    return f"{count / 1000 / MB:.1f} GB" if count >= 1000 * MB else f"{count / MB:.1f} MB"
