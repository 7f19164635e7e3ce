"""How much of one request is left for messages."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.agent.context.estimate import UNKNOWN, Estimator
from fermix.providers.port import ModelLimits

USUAL_ANSWER_TOKENS = 4_096
"""Kept free for the answer where the model's longest is not known."""
LEAST_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of messages, as the model's tokenizer makes tokens of them."""

    space: int
    """What fits."""
    due: int
    """From here on it is time to sum up."""


def room_of(
    limits: ModelLimits, model: str, *, fixed_bytes: int, threshold: float, estimator: Estimator
) -> Room | None:
    """The room beside instructions and tools; None when nothing bounds it."""
    bounds: list[tuple[float, float]] = []
    if limits.window_tokens is not None:
        window = limits.window_tokens
        answer = min(limits.max_output_tokens or USUAL_ANSWER_TOKENS, window // 8)
        scale = estimator.bytes_per_token(model)
        bounds.append(((window - answer) * scale, min(window - answer, window * threshold) * scale))
    ceiling = estimator.ceiling(model)
    if ceiling is not None:
        bounds.append((ceiling, ceiling * threshold))
    if not bounds:
        return None
    space = max(LEAST_BYTES, int(min(whole for whole, _ in bounds)) - fixed_bytes)
    due = max(LEAST_BYTES // 2, int(min(due for _, due in bounds)) - fixed_bytes)
    return Room(space, min(space, due))


def result_limit(limits: ModelLimits, most_bytes: int) -> int:
    """Longest text of one tool result: an eighth of the window, so that no few of them fill it."""
    if limits.window_tokens is None:
        return most_bytes
    return min(most_bytes, max(LEAST_BYTES, int(limits.window_tokens * UNKNOWN / 8)))
