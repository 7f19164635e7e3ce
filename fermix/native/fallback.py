"""The compiled module's functions in pure Python: the same results, slower, and said so in NOTICE."""

from __future__ import annotations

import ctypes
import os
import signal as signals
import sys
from pathlib import Path
from posix import close, posix_spawn, waitpid  # not os': gevent replaces those and would reap the monitor

NOTICE = (
    "fermix.native is not compiled: each command starts a Python process as its monitor "
    "(about 40 ms and 10 MB more per command). Build it with: pip install -e ."
)
# Source: linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def kill_pgid(pgid: int, signal: int) -> None:
    """Signal every process of a group; see `_native.kill_pgid`."""
    if pgid <= 1:
        raise ValueError(f"Group {pgid} cannot be signalled; a group's number is above 1.")
    os.killpg(pgid, signal)


def pidfd_open(pid: int) -> int:
    return os.pidfd_open(pid)


def pidfd_send_signal(fd: int, signal: int) -> None:
    signals.pidfd_send_signal(fd, signal)


def become_subreaper() -> None:
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def set_parent_death_signal(signal: int) -> None:
    _prctl(PR_SET_PDEATHSIG, signal)


def set_dumpable(is_dumpable: bool) -> None:
    _prctl(PR_SET_DUMPABLE, int(is_dumpable))


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def reap(pid: int, *, block: bool) -> int | None:
    """The wait status of exactly this child, None while it runs; see `_native.reap`."""
    if pid <= 0:
        raise ValueError(f"Process {pid} cannot be waited for; a process number is above 0.")
    ended, status = waitpid(pid, 0 if block else os.WNOHANG)
    return status if ended == pid else None


def start_monitor(
    path: bytes,
    argv: list[bytes],
    environment: list[bytes],
    cwd: bytes,
    stdio: tuple[int, int, int],
    pass_fds: tuple[int, ...],
    limits: tuple[int, int, int, int, int],
) -> tuple[int, int, int]:
    """Start `fallback_monitor` for the command; returns (monitor pid, control fd, status fd)."""
    control_read, control_write = os.pipe()
    status_read, status_write = os.pipe()
    inherited = (control_read, status_write, *stdio, *pass_fds)
    program = Path(__file__).with_name("fallback_monitor.py")
    facts = [*inherited[:5], *limits, len(pass_fds), *pass_fds]
    words = [
        sys.executable,
        "-I",
        "-S",
        str(program),
        *map(str, facts),
        os.fsdecode(cwd),
        os.fsdecode(path),
    ]
    try:
        pid = posix_spawn(
            sys.executable,
            [*map(os.fsencode, words), *argv],
            dict(line.split(b"=", 1) for line in environment),
            # a descriptor duplicated onto itself loses close-on-exec
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, fd) for fd in sorted(set(inherited))],
            setsid=True,
            setsigmask=signals.valid_signals() - {signals.SIGKILL, signals.SIGSTOP},
        )
    except BaseException:
        close(control_write)
        close(status_read)
        raise
    finally:
        close(control_read)
        close(status_write)
    return pid, control_write, status_read
