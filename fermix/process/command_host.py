"""Runs commands to their end: bounded in time and output, and with nothing left of them afterwards."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable

from fermix.clock import Clock
from fermix.process import proc
from fermix.process.command import Command, CommandResult, Ending
from fermix.process.family import Family
from fermix.process.ledger import GroupLedger
from fermix.process.readiness import read_ready
from fermix.process.settings import CommandSettings
from fermix.process.sockets import Address, is_loopback, socket_between
from fermix.tasks import Cancel, Deadline, at_most, sleep
from fermix.trust import Standing

CHUNK_BYTES = 65536
KILL_PATIENCE_S = 3.0
"""Longest to wait for killed processes; a monitor goes on alone with what the kernel does not let go."""
DRAIN_S = 1.0
"""Longest to read on after the last process is gone; only a descriptor sent elsewhere keeps a pipe open."""


class CommandHost:
    """Starts commands for turns and knows which run; one per daemon."""

    def __init__(self, ledger: GroupLedger, settings: Callable[[], CommandSettings], clock: Clock) -> None:
        """`settings` is asked when a command starts."""
        self._ledger = ledger
        self._settings = settings
        self._clock = clock
        self._running: set[_Run] = set()
        self._stop = Cancel()

    def run(
        self, command: Command, cancel: Cancel, on_output: Callable[[str], None] | None = None
    ) -> CommandResult:
        """How the command ended; by then every process it started is gone, daemons too.

        `on_output` gets the output while it comes; one that takes longer than the setting
        `reader_timeout_s` ends the command. Never raises for anything the command does.
        """
        started = self._clock.monotonic_s()
        if self._stop.is_set():
            return _not_started(self._stop.reason)
        if cancel.is_set():
            return _not_started(cancel.reason, Ending.CANCELLED)
        try:
            family = Family(
                command.argv,
                cwd=command.cwd,
                environment=command.environment,
                ledger=self._ledger,
                limits=command.limits,
                standing=command.standing,
                has_input=bool(command.stdin),
            )
        except (OSError, ValueError) as error:
            return _not_started(_reason(error))
        run = _Run(family, command, self._settings(), on_output)
        self._running.add(run)
        forgets = [each.on_set(lambda: run.end(Ending.CANCELLED)) for each in (cancel, self._stop)]
        try:
            run.watch()
        finally:
            for forget in forgets:
                forget()
            family.release()
            self._running.discard(run)
        return run.result(round((self._clock.monotonic_s() - started) * 1000))

    def stop(self, timeout_s: float) -> None:
        """Refuse new commands and end the running ones; returns when they are gone or the time is over."""
        self._stop.set("fermix is stopping")
        self._await_none(timeout_s / 2)
        for run in list(self._running):
            run.kill()
        self._await_none(timeout_s / 2)
        self._ledger.await_farewells(timeout_s / 2)

    def _await_none(self, timeout_s: float) -> None:
        deadline = Deadline.after(timeout_s)
        while self._running and not deadline.is_over():
            sleep(0.01)

    def standing_of(self, pid: int) -> Standing | None:
        """What a process may that one of our commands may have started; None when none did."""
        return self._ledger.standing_of(pid)

    def holds_connection(self, peer: Address, own: Address) -> bool:
        """Whether one of our commands may be at the other end (`peer`) of a TCP connection to `own`.

        A client of this machine that has left counts as one: it may have been a command that has ended.
        """
        socket = socket_between(peer, own)
        if socket is None:
            return is_loopback(peer)
        if not self._running and not self._ledger.is_seeing_off:
            return False
        # The socket's user tells nothing: a command can make one as another user, or give it away.
        holder = proc.holder_of(socket.inode)
        if holder is not None:
            return self.standing_of(holder) is not None
        # As a service the daemon has a user namespace of its own and sees into its own processes alone.
        return not self._ledger.is_free_of(socket.inode) or socket_between(peer, own) != socket


class _Run:
    """One command while it runs."""

    def __init__(
        self,
        family: Family,
        command: Command,
        settings: CommandSettings,
        on_output: Callable[[str], None] | None,
    ) -> None:
        self._family = family
        self._settings = settings
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._limit_bytes = command.output_limit_bytes
        self._input = memoryview(command.stdin)
        self._output = bytearray()
        self._is_open = True
        self._is_cut = False
        self._ending: Ending | None = None
        self._deadline = Deadline.after(command.timeout_s)
        """Of the present state: running, asked to end, killed, draining."""
        self._is_killed = False
        self._is_draining = False

    def end(self, ending: Ending) -> None:
        """Ask the whole family to end; SIGKILL follows after the grace time. The first ending stays."""
        if self._ending is None and not self._family.is_swept and self._family.leader_status is None:
            self._ending = ending
            self._family.terminate()
            self._deadline = Deadline.after(self._settings.grace_s)
            self._family.readiness.wake()

    def kill(self) -> None:
        """SIGKILL to the whole family now."""
        self._family.kill()
        self._is_killed = True
        self._deadline = Deadline.after(KILL_PATIENCE_S)
        self._family.readiness.wake()

    def watch(self) -> None:
        """Until the family is gone and its output read, or the last patience is over."""
        family = self._family
        while True:
            family.readiness.wait(self._deadline.remaining_s())
            self._read_output()
            self._write_input()
            had_ended = family.leader_status is not None
            family.read_status()
            if family.is_lost:
                self._ending = self._ending or Ending.LOST
            is_gone = family.is_swept or family.is_lost
            if is_gone and not self._is_open:
                return
            if is_gone and not self._is_draining:
                self._is_draining = True
                self._deadline = Deadline.after(DRAIN_S)
            elif family.leader_status is not None and not had_ended and self._ending is None:
                self._is_killed = True  # by the monitor, which ends what the command left running
                self._deadline = Deadline.after(KILL_PATIENCE_S)
            elif self._deadline.is_over() and not self._next_patience():
                return

    def _next_patience(self) -> bool:
        """What to do when the present deadline is over; False when nothing is left to try."""
        if self._is_draining or self._is_killed:
            return False
        if self._ending is None:
            self.end(Ending.TIMEOUT)
        else:
            self.kill()
        return True

    def _read_output(self) -> None:
        """One chunk, so that a flood does not keep the hub to itself."""
        if not self._is_open:
            return
        chunk = read_ready(self._family.output_fd, CHUNK_BYTES)
        if chunk is None:
            return
        if not chunk:
            self._is_open = False
            self._family.readiness.close(self._family.output_fd)
            return
        room = self._limit_bytes - len(self._output)
        if len(chunk) > room:
            self._is_cut = True
            self.end(Ending.OUTPUT_CAP)
        if room > 0 and self._ending in (None, Ending.OUTPUT_CAP):
            self._output += chunk[:room]
            self._tell(chunk[:room])
        elif room > 0:
            self._output += chunk[:room]  # last words after the request to end: kept, no longer streamed

    def _tell(self, chunk: bytes) -> None:
        if self._on_output is None or not (text := self._decoder.decode(chunk)):
            return
        with at_most(self._settings.reader_timeout_s) as limit:
            self._on_output(text)
        if limit.is_over:
            self._on_output = None
            self.end(Ending.STALLED)

    def _write_input(self) -> None:
        family = self._family
        if family.input_fd < 0:
            return
        try:
            self._input = self._input[os.write(family.input_fd, self._input[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:
            self._input = self._input[:0]  # it does not want to read: its right
        if not self._input:
            family.readiness.close(family.input_fd)
            family.input_fd = -1

    def result(self, duration_ms: int) -> CommandResult:
        # a cut output may end inside a character: not final, so that half is left out instead of replaced
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(bytes(self._output), not self._is_cut)
        status = self._family.leader_status
        code = os.waitstatus_to_exitcode(status) if status is not None else None
        return CommandResult(
            output=text,
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            ended=self._ending or Ending.EXIT,
            is_cut=self._is_cut,
            duration_ms=duration_ms,
        )


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename!r}" if error.filename else str(error)
    return str(error)


def _not_started(reason: str, ended: Ending = Ending.FAILED_TO_START) -> CommandResult:
    return CommandResult(
        output=f"The command was not started: {reason}.",
        exit_code=None,
        signal=None,
        ended=ended,
        is_cut=False,
        duration_ms=0,
    )
