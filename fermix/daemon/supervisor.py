"""Starts parts in order, restarts those that fail as their strategy says, stops them in mirrored order."""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gevent.event import Event
from gevent.queue import Empty, SimpleQueue

from fermix.clock import Clock, SystemClock
from fermix.daemon.part import Part, PartReport, PartState
from fermix.errors import Cancelled, DeadlineExceeded, RestartsExceeded
from fermix.tasks import ChildSpec, Deadline, Restart, Strategy, TaskGroup, time_limit

log = logging.getLogger(__name__)

_IDLE_WAIT_S = 60.0
"""Longest one wait of a supervisor that has nothing to do."""

_TASKS_STOP_S = 1.0
"""How long its own greenlets get to end; they only wait."""


@dataclass(frozen=True, slots=True)
class Intensity:
    """More than `restarts` within `period_s` and the supervisor gives up and fails itself."""

    restarts: int = 5
    period_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a failed part waits before its next start: doubled each time, spread by `jitter`."""

    first_s: float = 0.05
    limit_s: float = 30.0
    jitter: float = 0.2
    """Share of the wait that is random, so that parts that failed together do not return together."""
    healthy_after_s: float = 30.0
    """A part that ran this long starts from `first_s` again."""

    def delay_s(self, failures: int, spread: float) -> float:
        """The wait after the `failures`th failure in a row (from 1); `spread` is in 0..1."""
        wait_s = min(self.limit_s, self.first_s * 2.0 ** min(failures - 1, 30))
        return wait_s * (1.0 - self.jitter * spread)


STANDARD_INTENSITY = Intensity()
STANDARD_BACKOFF = Backoff()


@dataclass(frozen=True, slots=True)
class _Ended:
    part: Part
    generation: int
    error: Exception | None


@dataclass(slots=True)
class _Pending:
    due_s: float
    parts: list[Part]


class Supervisor:
    """A tree node; itself a `Child`, so supervisors nest.

    `intensity` None: never gives up, a part that keeps failing keeps being tried (channels).
    `is_tolerant`: a part that cannot start counts as one that failed, instead of failing `start`.
    """

    def __init__(
        self,
        name: str,
        specs: Sequence[ChildSpec],
        *,
        strategy: Strategy = Strategy.ONE_FOR_ONE,
        intensity: Intensity | None = STANDARD_INTENSITY,
        backoff: Backoff = STANDARD_BACKOFF,
        is_tolerant: bool = False,
        clock: Clock | None = None,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._strategy = strategy
        self._intensity = intensity
        self._backoff = backoff
        self._is_tolerant = is_tolerant
        self._clock = clock or SystemClock()
        self._spread = spread
        self._parts = [Part(spec, self._clock) for spec in specs]
        self._events: SimpleQueue[_Ended] = SimpleQueue()
        self._pending: list[_Pending] = []
        self._recent: deque[float] = deque()
        self._tasks = TaskGroup(f"supervisor/{name}")
        self._ended = Event()
        self._error: Exception | None = None
        self._is_stopping = False

    def start(self) -> Supervisor:
        """Start every part in order; returns when all are ready.

        Raises: what the first part that cannot start raised; those before it are stopped again.
        Cancelled when it was stopped meanwhile.
        """
        for part in self._parts:
            try:
                self._start_part(part)
                if self._is_stopping:
                    raise Cancelled(f"{self.name} was stopped while it started.")
            except Exception as error:
                if self._is_stopping or not self._is_tolerant:
                    self._stop_everything(self._shutdown_s(self._parts))
                    raise
                self._events.put(_Ended(part, part.generation, error))
        self._tasks.start(self._run, name="loop")
        return self

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended; raises RestartsExceeded when it gave up."""
        ended = bool(self._ended.wait(timeout_s))
        if ended and self._error is not None:
            raise self._error
        return ended

    def stop(self, timeout_s: float) -> None:
        """Stop every part in mirrored order, the last started first."""
        self._stop_everything(timeout_s)
        self._ended.set()

    def report(self) -> list[PartReport]:
        """The state of every part; those of a nested supervisor follow it as `parent/child`."""
        reports: list[PartReport] = []
        for part in self._parts:
            reports.append(part.report())
            if isinstance(part.child, Supervisor):
                reports += [inner.below(part.name) for inner in part.child.report()]
        return reports

    def _start_part(self, part: Part) -> None:
        """Start one part and watch it; raises what its start raised."""
        generation = part.begin()
        child = part.spec.start()
        part.became_ready(child)
        self._tasks.start(lambda: self._watch(part, generation), name=part.name)

    def _watch(self, part: Part, generation: int) -> None:
        child = part.child
        error: Exception | None = None
        try:
            while child is not None and part.generation == generation:
                if child.wait(_IDLE_WAIT_S):
                    break
        except Exception as failure:  # the boundary: whatever a part died of is what supervision is for
            error = failure
        if part.generation == generation:
            self._events.put(_Ended(part, generation, error))

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._handle_next()
                self._start_due()
        except RestartsExceeded as error:
            log.error("%s", error)
            self._fail(error)
        except Exception as error:  # a bug of ours: parts nobody watches are worse than parts restarted
            log.exception("The supervisor %s failed", self.name)
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End everything and let whoever waits for this supervisor know why."""
        self._error = error
        self._stop_everything(self._shutdown_s(self._parts))
        self._ended.set()

    def _handle_next(self) -> None:
        now_s = self._clock.monotonic_s()
        wait_s = min([_IDLE_WAIT_S, *(pending.due_s - now_s for pending in self._pending)])
        try:
            ended = self._events.get(timeout=max(0.0, wait_s))
        except Empty:
            return
        if ended.part.generation == ended.generation:
            self._handle_end(ended.part, ended.error)

    def _handle_end(self, part: Part, error: Exception | None) -> None:
        """One part ended by itself: decide what becomes of it and of its siblings."""
        part.ended(error)
        if error is None:
            log.info("%s/%s ended", self.name, part.name)
        else:
            log.warning("%s/%s failed: %s", self.name, part.name, error, exc_info=error)
        if not part.wants_restart(error):
            return
        self._count_restart(part, error)
        failures = part.failed_again(self._backoff.healthy_after_s)
        delay_s = self._backoff.delay_s(failures, self._spread())
        group = self._group_of(part)
        siblings = [sibling for sibling in group if sibling is not part]
        self._stop_parts(siblings, self._shutdown_s(siblings))
        self._schedule(group, self._clock.monotonic_s() + delay_s)

    def _count_restart(self, part: Part, error: Exception | None) -> None:
        if self._intensity is None:
            return
        now_s = self._clock.monotonic_s()
        self._recent.append(now_s)
        while self._recent and self._recent[0] < now_s - self._intensity.period_s:
            self._recent.popleft()
        if len(self._recent) > self._intensity.restarts:
            part.gave_up()
            raise RestartsExceeded(
                f"{self.name!r} gave up: {part.name!r} failed again after {self._intensity.restarts} "
                f"restarts within {self._intensity.period_s:g} s. Last failure: {error or 'it ended'}"
            ) from error

    def _group_of(self, part: Part) -> list[Part]:
        """The part and the siblings that restart with it, in start order."""
        if self._strategy is Strategy.ONE_FOR_ONE:
            return [part]
        first = 0 if self._strategy is Strategy.ONE_FOR_ALL else self._parts.index(part)
        return [
            sibling
            for sibling in self._parts[first:]
            if sibling is part or (sibling.is_wanted and sibling.spec.restart is not Restart.TEMPORARY)
        ]

    def _schedule(self, group: list[Part], due_s: float) -> None:
        """Plan the group's start; waiting restarts of its members merge into it."""
        for part in group:
            part.will_return()
        merged = {id(part) for part in group}
        for pending in self._pending:
            pending.parts = [part for part in pending.parts if id(part) not in merged]
        self._pending = [pending for pending in self._pending if pending.parts]
        self._pending.append(_Pending(due_s, group))

    def _start_due(self) -> None:
        now_s = self._clock.monotonic_s()
        due = [pending for pending in self._pending if pending.due_s <= now_s]
        self._pending = [pending for pending in self._pending if pending.due_s > now_s]
        for pending in due:
            if self._strategy is Strategy.ONE_FOR_ONE:
                # Beside the loop: a sibling that fails must not wait for this one to become ready.
                self._tasks.start(partial(self._restart, pending.parts), name="restart")
            else:
                self._restart(pending.parts)

    def _restart(self, group: list[Part]) -> None:
        """Start the group in order; the first that cannot start is handled as one that failed."""
        for part in group:
            if self._is_stopping:
                return
            part.restarts += 1
            try:
                self._start_part(part)
            except Exception as error:  # the boundary: see _watch
                self._events.put(_Ended(part, part.generation, error))
                return

    def _stop_everything(self, timeout_s: float) -> None:
        """End the supervisor's own tasks first, starts under way included, then the parts."""
        self._is_stopping = True
        self._tasks.stop(_TASKS_STOP_S)
        self._pending.clear()
        self._stop_parts(self._parts, timeout_s)

    @staticmethod
    def _shutdown_s(parts: Sequence[Part]) -> float:
        return sum(part.spec.shutdown_timeout_s for part in parts)

    def _stop_parts(self, parts: Sequence[Part], timeout_s: float) -> None:
        deadline = Deadline.after(timeout_s)
        for part in reversed(parts):
            child = part.retire()
            if child is None:
                continue
            limit_s = min(part.spec.shutdown_timeout_s, deadline.remaining_s())
            try:
                with time_limit(limit_s + 0.5, f"Stopping {self.name}/{part.name}"):
                    child.stop(limit_s)
            except DeadlineExceeded as error:
                log.error("%s It is left behind.", error)
            except Exception:  # the boundary: the parts before it must still be stopped
                log.exception("%s/%s failed while it was stopped", self.name, part.name)
            part.stopped()


__all__ = ["Backoff", "Intensity", "PartReport", "PartState", "Supervisor"]
