"""Greenlets that belong together and end together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import gevent

from fermix.tasks.deadline import Deadline, at_most

log = logging.getLogger(__name__)


_NEXT_TURN_S = 1e-9


def sleep(seconds: float) -> None:
    """Let others run for `seconds`; zero gives way to all who can go on, also for new bytes."""
    # gevent's own sleep(0) runs only what is ready already, and looks at no socket.
    gevent.sleep(seconds or _NEXT_TURN_S)


class Task:
    """One running greenlet; what makes it fail is logged and kept."""

    def __init__(self, name: str, work: Callable[[], Any], *, on_end: Callable[[Task], None]) -> None:
        self.name = name
        self.error: Exception | None = None
        """What ended it, once it is done; None when it returned or was stopped."""
        self._work = work
        self._on_end = on_end
        self._greenlet = gevent.Greenlet(copy_context().run, self._run)

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # the greenlet's boundary
            log.exception("Task %s failed", self.name)
            self.error = error
        finally:
            self._on_end(self)

    def start(self) -> None:
        self._greenlet.start()

    @property
    def is_done(self) -> bool:
        return bool(self._greenlet.ready())

    def join(self, timeout_s: float) -> bool:
        """Whether it ended within `timeout_s`."""
        self._greenlet.join(timeout_s)
        return self.is_done

    def stop(self, timeout_s: float) -> bool:
        """End it at its next switch; whether it was gone within `timeout_s`."""
        if self._greenlet is not gevent.getcurrent():
            self._greenlet.kill(block=True, timeout=timeout_s)
        if self.is_done:
            self._on_end(self)  # one that never ran has not said so itself
        return self.is_done


class TaskGroup:
    """Starts tasks, knows which still run, and stops them all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._tasks: set[Task] = set()

    def start(self, work: Callable[[], Any], *, name: str = "") -> Task:
        """Run `work` beside the caller."""
        full_name = f"{self.name}/{name or getattr(work, '__name__', 'task')}"
        task = Task(full_name, work, on_end=self._tasks.discard)
        self._tasks.add(task)
        task.start()
        return task

    def __len__(self) -> int:
        return len(self._tasks)

    def join(self, timeout_s: float) -> bool:
        """Whether every task ended by itself within `timeout_s`."""
        deadline = Deadline.after(timeout_s)
        while self._tasks and not deadline.is_over():
            next(iter(self._tasks)).join(deadline.remaining_s())
        return not self._tasks

    def stop(self, timeout_s: float) -> bool:
        """End every task at its next switch; whether all were gone within `timeout_s`."""
        greenlets = [task._greenlet for task in self._tasks if task._greenlet is not gevent.getcurrent()]
        with at_most(timeout_s):
            gevent.killall(greenlets, block=True)
        for task in [task for task in self._tasks if task.is_done]:
            self._tasks.discard(task)
        return not self._tasks
