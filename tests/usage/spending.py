"""Calls that were made up."""

from __future__ import annotations

from fermix.messages import ModelCall, Usage

NOON_MS = 1_764_590_400_000
"""2025-12-01 12:00 UTC."""
HOUR_MS = 3_600_000


def model_call(
    *,
    provider: str = "openai",
    model: str = "gpt",
    usage: Usage | None = None,
    cost: int | None = 100,
    ended_ms: int = NOON_MS,
    is_estimated: bool = False,
    outcome: str = "done",
    purpose: str = "answer",
) -> ModelCall:
    """A call that ended at `ended_ms`."""
    return ModelCall(
        provider=provider,
        model=model,
        usage=usage or Usage(1000, 200, 300, 50, 20),
        is_estimated=is_estimated,
        cost_micro_usd=cost,
        outcome=outcome,
        started_ms=ended_ms - 500,
        ended_ms=ended_ms,
        purpose=purpose,
    )
