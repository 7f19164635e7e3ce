"""A program at a pseudo terminal, for shows that need a person's hands."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_=>])|\r")


class Terminal:
    """A running program; `shown` is everything it wrote, without control sequences."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.shown = ""
        self._descriptor = descriptor

    def wait_for(self, pattern: str, *, timeout_s: float, after: int = 0) -> int:
        """Read until what was shown from `after` on matches; where the match ends.

        Raises: AssertionError when it does not come in time.
        """
        deadline = time.monotonic() + timeout_s
        while not (found := re.compile(pattern).search(self.shown, after)):
            if time.monotonic() > deadline or not self._read(1.0):
                raise AssertionError(
                    f"no {pattern!r} within {timeout_s:g} s; shown last: {self.shown[-1500:]}"
                )
        return found.end()

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._descriptor, keys.encode())

    def end(self, timeout_s: float) -> int:
        """Wait for the program; its exit status."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self._read(0.2)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"still running after {timeout_s:g} s; shown last: {self.shown[-1500:]}")

    def close(self) -> None:
        """End the program if it still runs."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._descriptor)

    def _read(self, timeout_s: float) -> bool:
        """Take what was written meanwhile; False when the program closed its terminal."""
        if not select.select([self._descriptor], [], [], timeout_s)[0]:
            return True
        try:
            written = os.read(self._descriptor, 65536)
        except OSError:  # how Linux says that the other end is closed
            return False
        text = written.decode(errors="replace")
        if "\x1b[6n" in text:
            self.type("\x1b[1;1R")  # a prompt asks a real terminal where its cursor is
        self.shown += CONTROL.sub("", text)
        return bool(written)


@contextlib.contextmanager
def terminal(command: list[str], *, folder: Path, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Start a command at a terminal of its own."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, dict(environment))
    running = Terminal(pid, descriptor)
    try:
        yield running
    finally:
        running.close()
