"""One spawned program with everything it starts, and the monitor that ends them all."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from posix import close

from gevent.socket import wait_read

from fermix.ids import new_id
from fermix.native import (
    Limits,
    RecordKind,
    RecordReader,
    Spawned,
    order_kill,
    order_terminate,
    spawn,
)
from fermix.process.ledger import MARK, GroupLedger
from fermix.process.readiness import READ, WRITE, Readiness, read_ready
from fermix.trust import Standing

EXEC_TIMEOUT_S = 10.0
"""Longest the kernel may take to load a program, say from a sleeping network disk."""


class Family:
    """A running program, its output pipe and its monitor, read by one greenlet."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        ledger: GroupLedger,
        limits: Limits,
        standing: Standing,
        has_input: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Starts it. Raises: OSError, ValueError as `native.spawn` does."""
        self.leader_status: int | None = None
        """Wait status of the program itself; None until it has ended."""
        self.is_swept = False
        """No process of the family is left."""
        self.is_lost = False
        """The monitor ended without having swept."""
        self.readiness = Readiness()
        self._ledger = ledger
        self._records = RecordReader()
        identity = new_id(time.time_ns() // 1_000_000)
        with ExitStack() as theirs, ExitStack() as ours:
            self.output_fd, output_end = _pipe()
            ours.callback(close, self.output_fd)
            theirs.callback(close, output_end)
            self.input_fd = -1
            if has_input:
                input_end, self.input_fd = _pipe()
                ours.callback(close, self.input_fd)
            else:
                input_end = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            theirs.callback(close, input_end)
            self._spawned: Spawned = spawn(
                argv,
                cwd=cwd,
                env={**environment, MARK: identity},
                stdin=input_end,
                stdout=output_end,
                stderr=output_end,
                limits=limits,
                pass_fds=pass_fds,
                wait_readable=_await_exec,
            )
            ours.pop_all()
        self._group = ledger.add(self._spawned, identity, standing)
        self.readiness.watch(self.output_fd, READ)
        self.readiness.watch(self._spawned.status_fd, READ)
        if has_input:
            self.readiness.watch(self.input_fd, WRITE)

    @property
    def pid(self) -> int:
        """The program itself."""
        return self._spawned.leader_pid

    def read_status(self) -> None:
        """Take in what the monitor has said since."""
        while not (self.is_swept or self.is_lost):
            received = read_ready(self._spawned.status_fd, 4096)
            if received is None:
                return
            if not received:
                self.is_lost = True
                self._ledger.sweep(self._group)
            for record in self._records.feed(received):
                if record.kind is RecordKind.ENDED:
                    self.leader_status = record.value
                elif record.kind is RecordKind.SWEPT:
                    self.is_swept = True
        self.readiness.close(self._spawned.status_fd)  # at its end it would be readable for ever

    def terminate(self) -> None:
        """SIGTERM to every process; they may then end by themselves until `kill`."""
        self._wake_monitor()
        order_terminate(self._spawned)

    def kill(self) -> None:
        """SIGKILL to every process until none is left."""
        self._wake_monitor()
        order_kill(self._spawned)

    def release(self) -> None:
        """Close all descriptors, which ends whatever still runs, and reap the monitor in time."""
        self.readiness.close_all()
        self._wake_monitor()
        close(self._spawned.monitor_pipe_fd)
        self._ledger.see_off(self._group, is_ended=self.is_swept or self.is_lost)

    def _wake_monitor(self) -> None:
        """The command may have stopped it; not reaped before `release`, so the number is its own."""
        with suppress(ProcessLookupError):
            os.kill(self._spawned.monitor_pid, signal.SIGCONT)


def _await_exec(status_fd: int) -> None:
    late = TimeoutError(f"the program was not loaded within {EXEC_TIMEOUT_S:g} s")
    wait_read(status_fd, EXEC_TIMEOUT_S, late)


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)
