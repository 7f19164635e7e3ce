"""The agent that new turns get, and those that turns begun before a change of settings still have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gevent.event import Event

from fermix.agent.loop import Agent
from fermix.providers.port import Provider
from fermix.tasks import Deadline, TaskGroup

log = logging.getLogger(__name__)

RETIRE_S = 10.0
"""How long a provider that nobody uses any more may take to stop."""


@dataclass(slots=True, eq=False)
class _Seat:
    """A provider and the turns that use it."""

    provider: Provider
    users: int = 0
    is_free: Event = field(default_factory=Event)


class PresentAgent:
    """Lends the agent to turns; one that is replaced keeps its provider until its last turn has ended."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._seat = _Seat(agent.provider)
        self._leaving: set[_Seat] = set()
        self._tasks = TaskGroup("providers")

    @property
    def agent(self) -> Agent:
        """What the next turn gets."""
        return self._agent

    @contextmanager
    def lent(self) -> Iterator[Agent]:
        """The agent for one turn, the same to its end."""
        agent, seat = self._agent, self._seat
        seat.users += 1
        try:
            yield agent
        finally:
            seat.users -= 1
            if not seat.users:
                seat.is_free.set()

    def replace(self, agent: Agent, *, patience_s: float) -> None:
        """Lend this one from now on.

        The old one's provider, if it is another, is stopped after its last turn, and at the latest after
        `patience_s`.
        """
        before, self._agent = self._seat, agent
        if agent.provider is before.provider:
            return
        self._seat = _Seat(agent.provider)
        self._leave(before, patience_s)

    def retire(self, *, patience_s: float) -> None:
        """Stop the provider after its last turn; the agent is not lent any more."""
        self._leave(self._seat, patience_s)

    @property
    def is_leaving(self) -> bool:
        """Whether a provider that left is still in use."""
        return bool(self._leaving)

    def _leave(self, before: _Seat, patience_s: float) -> None:
        self._leaving.add(before)
        if not before.users:
            before.is_free.set()
        else:
            before.is_free.clear()
        self._tasks.start(lambda: self._retire(before, patience_s), name=before.provider.name)

    def stop(self, timeout_s: float) -> None:
        """Stop every provider there is."""
        deadline = Deadline.after(timeout_s)
        self._tasks.stop(timeout_s)
        for seat in (self._seat, *self._leaving):
            seat.provider.stop(deadline.remaining_s())
        self._leaving.clear()

    def _retire(self, seat: _Seat, patience_s: float) -> None:
        if not seat.is_free.wait(patience_s):
            log.warning("Provider %s is stopped under %d turns", seat.provider.name, seat.users)
        seat.provider.stop(RETIRE_S)
        self._leaving.discard(seat)
