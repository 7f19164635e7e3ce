"""Agents for messages that name their model, made when one is asked for and kept for the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fermix.agent.loop import Agent
from fermix.agent.present import PresentAgent
from fermix.errors import ModelPinRefused, ProviderError
from fermix.messages import Pin
from fermix.providers.chain import Chain
from fermix.providers.pinned import Missing, WithEffort
from fermix.providers.port import Provider
from fermix.tasks import Deadline

MOST = 16
"""Agents that are kept; the one asked for longest ago leaves first."""


class Pins:
    """Lends them to turns like `PresentAgent`."""

    def __init__(
        self,
        *,
        chain: Callable[[], Chain],
        build: Callable[[str, str], Chain],
        agent: Callable[[Provider], Agent],
        patience_s: Callable[[], float],
    ) -> None:
        """`build` makes the chain of one that a provider and a model name (empty: its own) stand for.

        `patience_s`: how long turns may still use one that leaves.
        """
        self._chain = chain
        self._build = build
        self._agent = agent
        self._patience_s = patience_s
        self._kept: OrderedDict[tuple[str, str], PresentAgent] = OrderedDict()
        self._leaving: list[PresentAgent] = []

    @contextmanager
    def lent(self, pin: Pin) -> Iterator[Agent]:
        """The agent for one turn; one whose model is there no more says that as its answer."""
        chain = self._chain()
        shared = chain.only(pin.provider, pin.model) if pin.provider else chain
        if shared is not None:
            # Whoever lends the present agent keeps its providers for as long as this turn runs.
            yield self._agent(_with_effort(shared, pin))
            return
        try:
            present = self._present(pin)
        except ProviderError as error:
            yield self._agent(Missing(pin.provider, pin.model, error.message))
            return
        with present.lent() as agent:
            yield agent if not pin.effort else self._agent(_with_effort(agent.provider, pin))

    def check(self, pin: Pin) -> None:
        """Raises: ModelPinRefused when no such provider can be asked, or it knows no such effort."""
        if pin.model and not pin.provider:
            raise ModelPinRefused(f"No provider stands before '/{pin.model}'; expected PROVIDER/MODEL.")
        try:
            provider = self._provider(pin)
        except ProviderError as error:
            raise ModelPinRefused(error.message, hint=error.hint) from error
        efforts = provider.limits.efforts
        if pin.effort and pin.effort not in efforts:
            known = f"expected one of {', '.join(efforts)}" if efforts else "it knows no levels of thinking"
            raise ModelPinRefused(f"No effort {pin.effort!r} of {provider.name}/{provider.model}; {known}.")

    def clear(self) -> None:
        """The settings have changed: make all of them anew when they are asked for next."""
        while self._kept:
            self._let_go()

    def stop(self, timeout_s: float) -> None:
        """Stop every provider there is."""
        deadline = Deadline.after(timeout_s)
        for present in (*self._kept.values(), *self._leaving):
            present.stop(deadline.remaining_s())
        self._kept.clear()
        self._leaving.clear()

    def _provider(self, pin: Pin) -> Provider:
        if not pin.provider:
            return self._chain()
        return self._chain().only(pin.provider, pin.model) or self._present(pin).agent.provider

    def _present(self, pin: Pin) -> PresentAgent:
        key = pin.provider, pin.model
        present = self._kept.get(key)
        if present is None:
            present = self._kept[key] = PresentAgent(self._agent(self._build(*key)))
        self._kept.move_to_end(key)
        if len(self._kept) > MOST:
            self._let_go()
        return present

    def _let_go(self) -> None:
        _, present = self._kept.popitem(last=False)
        self._leaving = [one for one in self._leaving if one.is_leaving]
        present.retire(patience_s=self._patience_s())
        self._leaving.append(present)


def _with_effort(provider: Provider, pin: Pin) -> Provider:
    return WithEffort(provider, pin.effort) if pin.effort else provider
