"""Runs the calls of one step: neighbours that only read side by side, none longer than a stop allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from gevent.event import Event

from fermix.agent.events import ToolCalled, ToolReplied
from fermix.capabilities.context import ToolContext
from fermix.capabilities.registry import Registry
from fermix.errors import Cancelled
from fermix.messages import ToolCall, ToolMessage
from fermix.tasks import Task, TaskGroup

LAST_WORDS_S = 0.7
"""What a tool gets to end by itself once its turn is stopped; whoever stopped it waits for no more."""

Invoke = Callable[[ToolCall, ToolContext], ToolMessage]
Hear = Callable[[ToolCall, ToolMessage], ToolMessage]


class Hands:
    """Runs tool calls in tasks of their own, so that a stop does not wait for one that does not listen."""

    def __init__(self, registry: Registry, invoke: Invoke) -> None:
        self._registry = registry
        self._invoke = invoke

    def run(
        self, calls: tuple[ToolCall, ...], context: ToolContext, hear: Hear
    ) -> Iterator[ToolCalled | ToolReplied]:
        """Results in the order of the calls; `hear` is given each, and gives what is stored of it.

        Raises: Cancelled when the turn is stopped meanwhile.
        """
        for reads_only, neighbours in groupby(calls, lambda call: self._registry.reads_only(call.name)):
            batch = list(neighbours)
            for together in [batch] if reads_only else [[call] for call in batch]:
                for call in together:
                    yield ToolCalled(call)
                results = self._side_by_side(together, context)
                for call, result in zip(together, results, strict=True):
                    yield ToolReplied(hear(call, result))

    def _side_by_side(self, calls: list[ToolCall], context: ToolContext) -> Iterator[ToolMessage]:
        group = TaskGroup(f"tools of {context.turn.id}")
        results: list[ToolMessage | None] = [None] * len(calls)
        changed = [Event() for _ in calls]

        def start(index: int, call: ToolCall) -> Task:
            def work() -> None:
                try:
                    results[index] = self._invoke(call, context)
                except Cancelled:
                    pass  # the turn knows
                finally:
                    changed[index].set()

            return group.start(work, name=call.name)

        def wake() -> None:
            for event in changed:
                event.set()

        cancel, deadline = context.turn.cancel, context.turn.deadline
        forget = cancel.on_set(wake)
        tasks = [start(index, call) for index, call in enumerate(calls)]
        try:
            for index, task in enumerate(tasks):
                changed[index].wait(deadline.remaining_s())
                if cancel.is_set():
                    group.join(LAST_WORDS_S)
                    cancel.check()
                task.join(0)
                yield results[index] or _too_late(calls[index])
        finally:
            forget()
            group.stop(timeout_s=LAST_WORDS_S)


def _too_late(call: ToolCall) -> ToolMessage:
    return ToolMessage(call.id, call.name, f"{call.name} did not come to an end in time.", is_error=True)
