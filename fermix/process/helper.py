"""A program that stays: started, watched until it is ready, logged, and ended with all it started."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fermix.errors import HelperFailed
from fermix.native import Limits
from fermix.process.command import LEAST, NO_LIMITS
from fermix.process.family import Family
from fermix.process.ledger import GroupLedger
from fermix.process.readiness import read_ready
from fermix.tasks import Deadline, Task, TaskGroup, sleep

log = logging.getLogger(__name__)

LINE_BYTES = 2000
TAIL_LINES = 20
READY_POLL_S = 0.05
KILL_PATIENCE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperSpec:
    """How to start a helper."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    is_ready: Callable[[], bool] = field(default=lambda: True)
    """Polled until it is true; must not block longer than a moment."""
    ready_timeout_s: float = 30.0
    grace_s: float = 2.0
    limits: Limits = NO_LIMITS
    """`nice` among them: a model that computes for seconds must not slow the owner's machine down."""
    pass_fds: tuple[int, ...] = ()


class Helper:
    """One running helper, a `tasks.Child` for a supervisor."""

    def __init__(self, spec: HelperSpec, ledger: GroupLedger) -> None:
        """Starts it and returns when it is ready.

        Raises: HelperFailed with its last words when it ends, or is not ready in time.
        """
        self._spec = spec
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._line = b""
        self._is_stopping = False
        try:
            self._family = Family(
                spec.argv,
                cwd=spec.cwd,
                environment=spec.environment,
                ledger=ledger,
                limits=spec.limits,
                standing=LEAST,
                pass_fds=spec.pass_fds,
            )
        except (OSError, ValueError) as error:
            raise HelperFailed(f"Helper {spec.name!r} could not be started: {error}") from error
        self._tasks = TaskGroup(f"helper {spec.name}")
        self._watcher: Task = self._tasks.start(self._watch, name="output")
        try:
            self._await_ready()
        except BaseException:
            self.stop(spec.grace_s + KILL_PATIENCE_S)
            raise

    @property
    def pid(self) -> int:
        """The helper's own process."""
        return self._family.pid

    def last_words(self) -> str:
        """The last lines it printed."""
        return "\n".join(self._tail)

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within `timeout_s`.

        Raises: HelperFailed when it ended without having been told to.
        """
        if not self._watcher.join(timeout_s):
            return False
        if not self._is_stopping:
            raise HelperFailed(self._end_message())
        return True

    def stop(self, timeout_s: float) -> None:
        """SIGTERM, after the grace time SIGKILL, to it and all it started."""
        self._is_stopping = True
        if not self._watcher.is_done:
            self._family.terminate()
            if not self._watcher.join(min(self._spec.grace_s, timeout_s)):
                self._family.kill()
                if not self._watcher.join(KILL_PATIENCE_S):
                    self._watcher.stop(KILL_PATIENCE_S)

    def _await_ready(self) -> None:
        deadline = Deadline.after(self._spec.ready_timeout_s)
        while not self._spec.is_ready():
            if self._watcher.is_done or self._family.leader_status is not None:
                self._watcher.join(KILL_PATIENCE_S)
                raise HelperFailed(self._end_message())
            if deadline.is_over():
                waited = f"{self._spec.ready_timeout_s:g} s"
                raise HelperFailed(
                    f"Helper {self._spec.name!r} was not ready after {waited}.{self._said()}"
                )
            sleep(READY_POLL_S)

    def _end_message(self) -> str:
        status = self._family.leader_status
        code = os.waitstatus_to_exitcode(status) if status is not None else None
        how = "lost its monitor" if code is None else f"ended with code {code}"
        return f"Helper {self._spec.name!r} {how}.{self._said()}"

    def _said(self) -> str:
        return f" It said: {self.last_words()}" if self._tail else ""

    def _watch(self) -> None:
        family, is_open = self._family, True
        try:
            while not (family.is_swept or family.is_lost):
                family.readiness.wait(60.0)
                if is_open:
                    is_open = self._read_lines()
                family.read_status()
            while is_open and (chunk := read_ready(family.output_fd, LINE_BYTES)):
                self._take(chunk)
        finally:
            self._flush()
            family.release()

    def _read_lines(self) -> bool:
        """Whether there may be more."""
        chunk = read_ready(self._family.output_fd, 65536)
        if chunk == b"":
            self._family.readiness.close(self._family.output_fd)
            return False
        self._take(chunk or b"")
        return True

    def _take(self, chunk: bytes) -> None:
        *whole, self._line = (self._line + chunk).split(b"\n")
        for line in whole:
            self._say(line)
        if len(self._line) > LINE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._line:
            self._say(self._line)
        self._line = b""

    def _say(self, line: bytes) -> None:
        text = line[:LINE_BYTES].decode("utf-8", "replace").rstrip()
        self._tail.append(text)
        log.debug("%s: %s", self._spec.name, text)
