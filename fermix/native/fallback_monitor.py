"""The monitor of native/monitor.c as a Python program; run by `fallback.start_monitor`, never imported.

It is a process with one thread, so unlike the daemon it may run Python between fork and exec.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

STARTED, FAILED, ENDED, SWEPT = 1, 2, 3, 4
STAGE_PREPARE, STAGE_CHDIR, STAGE_EXEC = 0, 1, 2
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36
PASS_S = 0.005
ORPHAN_PATIENCE_S = 30.0
RESOURCES = (resource.RLIMIT_DATA, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)


class Monitor:
    """Runs one command and ends its family; see native/monitor.c, which this follows step by step."""

    def __init__(self, words: list[str]) -> None:
        numbers = [int(word) for word in words[:11]]
        self.control_fd, self.status_fd = numbers[:2]
        self.stdio = numbers[2:5]
        self.limits, self.nice, passed = numbers[5:9], numbers[9], numbers[10]
        self.pass_fds = [int(word) for word in words[11 : 11 + passed]]
        self.cwd, self.path, *self.argv = words[11 + passed :]
        self.libc = ctypes.CDLL(None)
        self.leader = 0
        self.is_leader_done = False
        self.is_terminating = False
        self.is_killing = False
        self.orphaned_at: float | None = None

    def report(self, kind: int, value: int, detail: int = 0) -> None:
        with suppress(BrokenPipeError):
            os.write(self.status_fd, struct.pack("=iii", kind, value, detail))

    def start(self) -> bool:
        """Whether the program was executed."""
        self.libc.prctl(PR_SET_NAME, b"fermix-monitor", 0, 0, 0)
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        failure_read, failure_write = os.pipe()
        self.leader = os.fork()
        if self.leader == 0:
            self.run_leader(failure_write)
        os.close(failure_write)
        failure = os.read(failure_read, 8)
        os.close(failure_read)
        if failure:
            self.report(FAILED, *struct.unpack("=ii", failure))
            return False
        self.report(STARTED, self.leader)
        for fd in {*self.stdio, *self.pass_fds} - {self.control_fd, self.status_fd}:
            os.close(fd)
        os.chdir("/")
        return True

    def run_leader(self, failure_fd: int) -> None:
        stage = STAGE_PREPARE
        try:
            os.setsid()
            self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in self.stdio]
            for number, fd in enumerate(moved):
                os.dup2(fd, number)
            for fd in (self.control_fd, self.status_fd, *self.stdio):
                if fd > 2 and fd not in self.pass_fds:
                    os.set_inheritable(fd, False)
            stage = STAGE_CHDIR
            os.chdir(self.cwd)
            stage = STAGE_EXEC
            self.apply_limits()
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                if number < signal.SIGRTMIN:
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execve(self.path, self.argv, os.environ)
        except OSError as error:
            os.write(failure_fd, struct.pack("=ii", error.errno or 5, stage))
        finally:
            os._exit(127)

    def apply_limits(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for kind, limit in zip(RESOURCES, self.limits, strict=True):
            if limit >= 0:
                highest = resource.getrlimit(kind)[1]
                hard = limit + 5 if kind == resource.RLIMIT_CPU else limit
                hard = hard if highest == resource.RLIM_INFINITY else min(hard, highest)
                resource.setrlimit(kind, (min(limit, hard), hard))
        if self.nice:
            os.nice(self.nice)

    def watch(self) -> None:
        """Until no descendant is left."""
        while self.reap():
            if self.orphaned_at and time.monotonic() - self.orphaned_at > ORPHAN_PATIENCE_S:
                break
            if self.is_killing or (self.is_leader_done and not self.is_terminating):
                self.signal_family(signal.SIGKILL)
            waits = [] if self.orphaned_at else [self.control_fd]
            if select.select(waits, [], [], PASS_S)[0]:
                self.read_orders()
        self.report(SWEPT, 0)

    def reap(self) -> bool:
        """Whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.leader and not self.is_leader_done:
                self.is_leader_done = True
                self.report(ENDED, status)

    def read_orders(self) -> None:
        orders = os.read(self.control_fd, 16)
        if not orders:
            self.is_killing, self.orphaned_at = True, time.monotonic()
        elif b"K" in orders:
            self.is_killing = True
        elif not self.is_terminating:
            self.is_terminating = True
            self.signal_family(signal.SIGTERM)
            self.signal_family(signal.SIGCONT)

    def signal_family(self, number: int) -> None:
        for pid in family_of(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def family_of(root: int) -> set[int]:
    """Every descendant of `root` that /proc shows now."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family - {root}


def close_all_but(wanted: set[int]) -> None:
    """The owner's inheritable descriptors must not stay open here; 0 to 2 become /dev/null."""
    for fd in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if fd > 2 and fd not in wanted:
            with suppress(OSError):  # the one that listed them is closed already
                os.close(fd)
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in {0, 1, 2} - wanted:
        os.dup2(nothing, fd)
    os.close(nothing)


if __name__ == "__main__":
    monitor = Monitor(sys.argv[1:])
    close_all_but({monitor.control_fd, monitor.status_fd, *monitor.stdio, *monitor.pass_fds})
    if monitor.start():
        monitor.watch()
