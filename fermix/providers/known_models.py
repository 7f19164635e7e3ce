"""What is known of models by name: window, longest answer, levels of thinking, sight, price.

Only what a vendor's own page said on the day named; limits and price of a model that is not here are not
known, and nothing is guessed for it. Prices are micro-USD for a million tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fermix.providers.limits import FREE, ModelLimits, Price

_DATED = re.compile(r"-(20\d\d-?\d\d-?\d\d|latest)$")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model."""

    limits: ModelLimits
    price: Price | None = None
    """None where it is not known, or not one number."""


UNKNOWN = ModelFacts(ModelLimits())


def _price(
    input: float, output: float, *, cached: float, written: float | None = None, up_to: int | None = None
) -> Price:
    """From USD for a million tokens, as vendors print them."""

    def micro(usd: float) -> int:
        return round(usd * 1_000_000)

    return Price(
        input=micro(input),
        output=micro(output),
        cached=micro(cached),
        written=micro(input if written is None else written),
        as_of="2026-12-01",
        up_to_tokens=up_to,
    )


def _seeing(window: int, output: int | None, efforts: tuple[str, ...] = ()) -> ModelLimits:
    return ModelLimits(sees_images=True, window_tokens=window, max_output_tokens=output, efforts=efforts)


_CLAUDE = ("low", "medium", "high")
_GPT = ("none", "low", "medium", "high", "xhigh")
_GROK = ("low", "medium", "high")

KNOWN: dict[str, dict[str, ModelFacts]] = {
    # Source: https://platform.claude.com/docs/en/about-claude/models/overview and the page of each model
    # (window, output, prices; a write to the cache costs 1.25 and a read 0.1 of the input); 2026-12-01.
    "anthropic": {
        "claude-opus-5-5": ModelFacts(
            _seeing(1_000_000, 128_000, _CLAUDE), _price(4, 20, cached=0.4, written=5)
        ),
        "claude-opus-5": ModelFacts(
            _seeing(1_000_000, 128_000, _CLAUDE), _price(5, 25, cached=0.5, written=6.25)
        ),
        "claude-sonnet-5-5": ModelFacts(
            _seeing(1_000_000, 128_000, _CLAUDE), _price(2, 10, cached=0.2, written=2.5)
        ),
        "claude-sonnet-5": ModelFacts(
            _seeing(1_000_000, 128_000, _CLAUDE), _price(2, 10, cached=0.2, written=2.5)
        ),
        # Its price is told as "from": not one number.
        "claude-haiku-5-5": ModelFacts(_seeing(1_000_000, 128_000, _CLAUDE)),
        "claude-haiku-4-5": ModelFacts(_seeing(200_000, 64_000), _price(1, 5, cached=0.1, written=1.25)),
    },
    # Source: https://developers.openai.com/api/docs/pricing and the page of each model; longer requests
    # than 272,000 tokens cost more; 2026-12-01.
    "openai": {
        "gpt-5.5": ModelFacts(_seeing(1_050_000, 128_000, _GPT), _price(5, 30, cached=0.5, up_to=272_000)),
        "gpt-5-codex": ModelFacts(
            _seeing(400_000, 128_000, ("low", "medium", "high")), _price(1.25, 10, cached=0.125)
        ),
        "gpt-5": ModelFacts(
            _seeing(400_000, 128_000, ("minimal", "low", "medium", "high")),
            _price(1.25, 10, cached=0.125),
        ),
    },
    # Source: https://docs.x.ai/developers/models and /grok-4-7; from 200,000 tokens on a request costs
    # more; 2026-12-01.
    "xai": {
        "grok-4.7": ModelFacts(
            _seeing(500_000, None, (*_GROK, "xhigh")), _price(2, 6, cached=0.5, up_to=199_999)
        ),
        "grok-4.5": ModelFacts(_seeing(500_000, None, _GROK), _price(2, 6, cached=0.5, up_to=199_999)),
        "grok-4.3": ModelFacts(_seeing(1_000_000, None)),
    },
}


_OWN_MACHINE = ModelFacts(ModelLimits(), FREE)


def facts_of(vendor: str, model: str) -> ModelFacts:
    """What is known of a vendor's model, also under a dated name of it."""
    if vendor == "ollama" and not model.endswith("cloud"):
        return _OWN_MACHINE  # a model of its cloud is named so, as in https://docs.ollama.com/cloud
    known = KNOWN.get(vendor, {})
    return known.get(model) or known.get(_DATED.sub("", model), UNKNOWN)
