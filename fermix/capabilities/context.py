"""What a tool is handed when it runs, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fermix.capabilities.effects import Effects
from fermix.capabilities.turn import TurnFacts
from fermix.clock import Clock
from fermix.conversations.results import StoredResult


def _nothing(id: str) -> None:
    """Where no results are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """A tool's whole world."""

    turn: TurnFacts
    effects: Effects
    progress: Callable[[str], None]
    """Tell whoever watches how far a long call is; a short line."""
    clock: Clock
    recall: Callable[[str], StoredResult | None] = _nothing
    """A long tool result of this conversation by its id; None when it is not kept."""
