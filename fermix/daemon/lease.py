"""The lock that lets only one daemon serve a home, held from the very first moment to the last process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fermix.daemon.mode import Mode
from fermix.errors import HomeUnsafe, LeaseHeld
from fermix.process.proc import look
from fermix.tasks import Deadline, sleep

_LOOK_AGAIN_S = 0.02


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote the lease file last."""

    pid: int
    mode: Mode
    started: int
    """The process's start time in clock ticks since boot, so that a reused pid is not mistaken for it."""

    @property
    def is_alive(self) -> bool:
        return _start_ticks(self.pid) == self.started


class Lease:
    """A `flock` on run.lock.

    The descriptor is inherited by the worker, so the lease is free only when arbiter and worker are both
    gone; commands and helpers never have it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def take(
        self, mode: Mode, *, wait_s: float, leave_s: float, ask_to_leave: Callable[[Holder], None]
    ) -> None:
        """Hold the lease, or say who does.

        A private daemon is asked to leave when a full one starts, and gets `leave_s` for it. When the
        holder is dead, its last processes are waited for up to `wait_s`.
        Raises: LeaseHeld naming the holder.
        """
        self._open()
        deadline = Deadline.after(wait_s)
        asked: Holder | None = None
        while not self._try_lock():
            holder = self.holder()
            if holder is not None and holder.is_alive and holder != asked:
                if holder.mode is Mode.FULL or mode is Mode.PRIVATE:
                    raise self._held(holder)
                asked = holder
                ask_to_leave(holder)
                deadline = Deadline.after(leave_s)
            if deadline.is_over():
                raise self._held(holder)
            sleep(_LOOK_AGAIN_S)
        self._write(Holder(os.getpid(), mode, _start_ticks(os.getpid()) or 0))

    def holder(self) -> Holder | None:
        """Who holds or last held it; None when nobody can be read from the file."""
        try:
            pid, mode, started = os.pread(self._fd, 256, 0).decode("ascii").split()[:3]
            return Holder(int(pid), Mode(mode), int(started))
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        """Let go in this process; the lease stays held while another process has it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as exc:
            raise HomeUnsafe(
                f"The lease '{self._path}' cannot be opened: {exc.strerror}; expected a plain file.",
                hint=f"Look at it with: ls -l '{self._path}'",
            ) from exc

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _write(self, holder: Holder) -> None:
        text = f"{holder.pid} {holder.mode} {holder.started}\n".encode("ascii")
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))

    def _held(self, holder: Holder | None) -> LeaseHeld:
        self.release()
        who = "Another fermix" if holder is None else f"Another fermix (pid {holder.pid})"
        return LeaseHeld(
            f"{who} serves the home '{self._path.parent}'.", hint="Stop it first with: fermix stop"
        )


def _start_ticks(pid: int) -> int | None:
    """None when there is no such process or it is only a zombie."""
    found = look(pid)
    return None if found is None or found.is_zombie else found.started
