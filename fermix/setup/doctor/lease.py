"""Who serves the home now: the lock on run.lock, without taking it, and with it for a repair."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fermix.errors import LeaseHeld
from fermix.paths import Home
from fermix.process.locks import is_locked, opened_by
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
    if not is_locked(path):
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


def named_holder(path: Path) -> Holder | None:
    """Who holds or last held it; None when nobody can be read from the file."""
    try:
        pid, mode, started = path.read_text("ascii").split()[:3]
        return Holder(int(pid), mode, int(started))
    except (OSError, ValueError):
        return None


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
