"""Who serves the home now: the lock on run.lock, without taking it, and with it for a repair."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fermix.errors import LeaseHeld
from fermix.paths import Home
from fermix.process.proc import look as look_at_process
from fermix.process.proc import name_of
from fermix.setup.doctor.finding import Finding, Topic, quoted
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("lease")
_LOOKS = 5
_LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote run.lock last. Source: daemon.lease.Holder"""

    pid: int
    mode: str
    started: int

    @property
    def is_alive(self) -> bool:
        found = look_at_process(self.pid)
        return found is not None and not found.is_zombie and found.started == self.started


def look(scene: Scene) -> list[Finding]:
    """Whether the lock is held by the daemon that says it holds it."""
    path = scene.home.lease
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return [TOPIC.fail(f"'{path}' is no plain file.", f"mv {quoted(path)} {quoted(path)}.aside")]
    if not is_held(scene.home):
        return [TOPIC.ok("Nobody holds the lease of this home.")]
    holder = _settled_holder(path)
    open_in = opened_by(path)
    if holder is not None and holder.is_alive:
        return [TOPIC.ok(f"The lease is held by fermix (pid {holder.pid}, {holder.mode}).")]
    who = f"pid {holder.pid}, which is gone" if holder else "nobody who can be read from it"
    pids = [pid for pid in open_in if pid != os.getpid()]
    if not pids:
        return [
            TOPIC.fail(
                f"'{path}' is locked for {who}; no process shows it open.", f"fuser -v {quoted(path)}"
            )
        ]
    names = ", ".join(f"'{name_of(pid)}' (pid {pid})" for pid in pids)
    return [
        TOPIC.fail(
            f"The lease '{path}' was taken by {who}, and is still held by {names}: no fermix can start.",
            f"kill {' '.join(map(str, pids))}",
        )
    ]


def _settled_holder(path: Path) -> Holder | None:
    """As `named_holder`; a daemon that has just taken the lock gets a moment to write itself down."""
    for _ in range(_LOOKS):
        holder = named_holder(path)
        if holder is not None and holder.is_alive:
            break
        time.sleep(_LOOK_AGAIN_S)
    return holder


def is_held(home: Home) -> bool:
    """Whether some process holds the lock, asked without touching it: a starting daemon could fail.

    Source: proc(5), /proc/locks: "1: FLOCK ADVISORY WRITE pid major:minor:inode start end". The
    device may be another there than stat says, so a doubtful line counts only for a file that is open.
    """
    try:
        found = home.lease.stat()
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    places = [line.split()[-3].split(":") for line in lines if "FLOCK" in line and len(line.split()) >= 8]
    exact = [f"{os.major(found.st_dev):02x}", f"{os.minor(found.st_dev):02x}", str(found.st_ino)]
    if exact in places:
        return True
    return any(place[-1] == str(found.st_ino) for place in places) and bool(opened_by(home.lease))


def named_holder(path: Path) -> Holder | None:
    """Who holds or last held it; None when nobody can be read from the file."""
    try:
        pid, mode, started = path.read_text("ascii").split()[:3]
        return Holder(int(pid), mode, int(started))
    except (OSError, ValueError):
        return None


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


@contextmanager
def kept_out(home: Home) -> Iterator[None]:
    """No daemon starts while the block runs: it waits for the lock as for a dead daemon's.

    Raises: LeaseHeld when one runs.
    """
    descriptor = os.open(home.lease, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeaseHeld(
                f"A fermix serves the home '{home.root}' by now.", hint="fermix doctor"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _has_open(descriptors: Path, wanted: os.stat_result) -> bool:
    with suppress(OSError):  # gone, or another user's
        for each in descriptors.iterdir():
            with suppress(OSError):
                found = each.stat()
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    return True
    return False
