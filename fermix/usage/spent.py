"""What some calls came to, with nothing made up where a price or a count is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fermix.messages import ModelCall, Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """A sum over calls."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    priced_micro_usd: int = 0
    """What the calls with a known price cost."""
    unpriced: int = 0
    """Calls whose price is not known."""
    estimated: int = 0
    """Calls whose tokens are our guess, since the provider did not count them."""

    @property
    def cost_micro_usd(self) -> int | None:
        """What all of it cost; None when the price of any call is not known."""
        return None if self.unpriced else self.priced_micro_usd

    @property
    def tokens(self) -> int:
        """Everything that was read and written."""
        return self.usage.input_tokens + self.usage.output_tokens

    @staticmethod
    def of(call: ModelCall) -> Spent:
        """One call."""
        cost = call.cost_micro_usd
        return Spent(1, call.usage, cost or 0, int(cost is None), int(call.is_estimated))

    @staticmethod
    def total(calls: Iterable[ModelCall]) -> Spent:
        """All of them together."""
        return sum(map(Spent.of, calls), NOTHING)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.usage + other.usage,
            self.priced_micro_usd + other.priced_micro_usd,
            self.unpriced + other.unpriced,
            self.estimated + other.estimated,
        )


NOTHING = Spent()
