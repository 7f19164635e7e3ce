"""One provider over several: the first that is well answers, the next take over when it fails."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from fermix.clock import Clock
from fermix.providers.health import Gate, GateState
from fermix.providers.port import (
    Done,
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    Price,
    Provider,
    ReasoningDelta,
    Remark,
    Restarted,
    StreamEvent,
    TextDelta,
)
from fermix.tasks import Deadline

log = logging.getLogger(__name__)

HASTY_WAIT_S = 2.0
"""Longest wait before the same provider is asked again while another one could answer."""
STAYING = frozenset(
    {
        FailureKind.CANCELLED,
        FailureKind.CONTENT_REFUSED,
        FailureKind.CONTEXT_OVERFLOW,
        FailureKind.INVALID_REQUEST,
    }
)
"""Failures that are the question's: another provider is not tried with it."""
_WORDS = {
    FailureKind.AUTH: "refuses its key",
    FailureKind.QUOTA: "has no credit left",
    FailureKind.MODEL_UNKNOWN: "does not have the model",
    FailureKind.RATE_LIMITED: "takes no more requests for now",
    FailureKind.IMAGE_UNSUPPORTED: "does not take this image",
    FailureKind.TIMEOUT: "was silent too long",
    FailureKind.TRANSPORT: "broke off",
    FailureKind.PROTOCOL: "gave an answer that cannot be read",
    FailureKind.PROVIDER_UNAVAILABLE: "is not available",
}


_Route = tuple[Provider, Gate]


@dataclass(frozen=True, slots=True)
class RouteHealth:
    """How one provider of the chain is."""

    name: str
    model: str
    state: GateState
    rest_s: float
    """Seconds until it is asked again; 0 when it may be now."""
    reason: str | None
    """Why it is not asked; None while it is well."""


class Chain:
    """See `Provider`; what it says of itself is what counts for the one that would answer now."""

    def __init__(self, providers: Sequence[Provider], *, clock: Clock) -> None:
        """The first is the primary one; at least one."""
        self._routes: list[_Route] = [(provider, Gate(clock)) for provider in providers]
        self._told: set[str] = set()
        """Who is passed over, and somebody was told."""

    @property
    def name(self) -> str:
        return self._present.name

    @property
    def model(self) -> str:
        return self._present.model

    @property
    def limits(self) -> ModelLimits:
        return self._present.limits

    @property
    def price(self) -> Price | None:
        return self._present.price

    @property
    def primary(self) -> Provider:
        """The one the owner named first."""
        return self._routes[0][0]

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """See `Provider.stream`: the next provider begins anew where one fails.

        Before the first word that goes unseen but for one Remark; after it `Restarted` comes first.
        """
        limits = self._present.limits
        tried: set[int] = set()
        before: tuple[str, Failed] | None = None
        was_shown = False
        barred = self._barred(request)
        tried.update(barred)
        while (route := self._entered(tried, barred)) is not None:
            provider, gate = route
            tried.add(id(provider))
            try:
                yield from self._remarks(before, barred, provider.name)
                if was_shown:
                    yield Restarted()
                outcome, was_shown = yield from _one(route, self._asked(request, provider, limits, tried))
            finally:
                # Whoever asked may go away in the middle; a gate that was left does not mind.
                gate.abandon()
            if outcome is None:
                return
            before = (provider.name, outcome)
            if outcome.kind in STAYING:
                break
            # Again, since what failed may have been billed.
            late = {one: why for one, why in self._barred(request).items() if one not in tried}
            barred |= late
            tried.update(late)
        if before is None and len(barred) == len(self._routes):
            yield Failed(FailureKind.BUDGET, next(iter(barred.values())), retryable=False)
            return
        yield before[1] if before is not None else self._resting()

    def only(self, name: str, model: str) -> Chain | None:
        """The provider of this name alone, its health shared; None when it is not here with this model.

        An empty model is whichever it has.
        """
        for route in self._routes:
            if route[0].name == name and model in ("", route[0].model):
                alone = Chain([route[0]], clock=route[1].clock)
                alone._routes = [route]
                return alone
        return None

    def report(self) -> list[RouteHealth]:
        """Each provider's health, in the order of the chain."""
        return [
            RouteHealth(
                provider.name,
                provider.model,
                gate.state,
                gate.rest_s,
                gate.reason.message if gate.reason else None,
            )
            for provider, gate in self._routes
        ]

    def look_again(self) -> None:
        """Ask every provider again that did not name a time itself: something was repaired, perhaps."""
        for _, gate in self._routes:
            if not gate.has_to_wait:
                gate.reset()

    def notice(self) -> str | None:
        return self._present.notice()

    def stop(self, timeout_s: float) -> None:
        """Give back what all of them hold."""
        deadline = Deadline.after(timeout_s)
        for provider, _ in self._routes:
            provider.stop(deadline.remaining_s())

    @property
    def _present(self) -> Provider:
        """Who would answer now."""
        well = (provider for provider, gate in self._routes if gate.rest_s <= 0)
        return next(well, self._routes[0][0])

    def _barred(self, request: ModelRequest) -> dict[int, str]:
        """Those that must not be asked, by identity, with why."""
        if request.barred is None:
            return {}
        found = (
            (id(provider), request.barred(provider.name, provider.price)) for provider, _ in self._routes
        )
        return {identity: why for identity, why in found if why is not None}

    def _remarks(
        self, before: tuple[str, Failed] | None, barred: Collection[int], name: str
    ) -> Iterator[Remark]:
        """Why `name` answers and not the one before it, where nobody was told of that yet."""
        if before is not None:
            yield Remark(_handed_over(*before, name))
        elif (untold := self._newly_barred(barred)) is not None:
            yield Remark(f"{untold} has used up its budget of today; {name} answers instead.")

    def _newly_barred(self, barred: Collection[int]) -> str | None:
        """The first of these that nobody was told of yet; None when there is no such."""
        names = [provider.name for provider, _ in self._routes if id(provider) in barred]
        untold = next((name for name in names if name not in self._told), None)
        self._told = set(names)
        return untold

    def _entered(self, tried: set[int], barred: Collection[int] = ()) -> _Route | None:
        """The next provider that may be asked; None when there is no other.

        When all rest of our own accord the first is asked all the same: better a try than a refusal.
        """
        left = [route for route in self._routes if id(route[0]) not in tried]
        for route in left:
            if route[1].enter():
                return route
        if len(tried) > len(barred):
            return None
        return next((route for route in left if not route[1].has_to_wait), None)

    def _asked(
        self, request: ModelRequest, provider: Provider, limits: ModelLimits, tried: set[int]
    ) -> ModelRequest:
        """The question as it fits this provider."""
        if request.fitted is not None and provider.limits != limits:
            request = request.fitted(provider.limits)
        others = (gate for other, gate in self._routes if id(other) not in tried)
        return (
            replace(request, longest_wait_s=HASTY_WAIT_S) if any(g.rest_s <= 0 for g in others) else request
        )

    def _resting(self) -> Failed:
        """What is said when every provider asked us to come back later."""
        provider, gate = min(self._routes, key=lambda route: route[1].rest_s)
        reason = gate.reason
        kind = reason.kind if reason else FailureKind.PROVIDER_UNAVAILABLE
        words = reason.message if reason else f"{provider.name} is not available."
        message = f"{words} It is asked again in {max(1, round(gate.rest_s))} s."
        return Failed(kind, message, retryable=True, retry_after_s=gate.rest_s)


def _one(route: _Route, request: ModelRequest) -> Generator[StreamEvent, None, tuple[Failed | None, bool]]:
    """One provider's answer but for a failure, which is returned, and whether words were shown."""
    provider, gate = route
    was_shown = False
    outcome: Failed | None = Failed(
        FailureKind.PROTOCOL, f"{provider.name} ended without an answer.", retryable=False
    )
    for event in provider.stream(request):
        if isinstance(event, Failed):
            outcome = event
            break
        if isinstance(event, Done):
            outcome = None
            gate.leave(None)
        was_shown = was_shown or isinstance(event, TextDelta | ReasoningDelta)
        yield event
    if outcome is not None:
        gate.leave(outcome)
        log.info("%s", outcome.message)
    return outcome, was_shown


def _handed_over(name: str, failed: Failed, to: str) -> str:
    return f"{name} {_WORDS.get(failed.kind, 'failed')}; {to} answers instead."
