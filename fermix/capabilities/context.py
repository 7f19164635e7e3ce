"""What a tool is handed when it runs, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fermix.clock import Clock
from fermix.messages import ConversationKey
from fermix.tasks import Cancel, Deadline
from fermix.trust import Standing

if TYPE_CHECKING:
    from fermix.capabilities.effects import Effects


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """The turn a tool runs for; effects are decided on these facts alone."""

    id: str
    key: ConversationKey
    standing: Standing
    cwd: Path
    """Where relative paths start."""
    file_root: Path | None
    """File tools stay below this folder; None lets them go wherever the checks allow."""
    deadline: Deadline
    cancel: Cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """A tool's whole world."""

    turn: TurnFacts
    effects: Effects
    progress: Callable[[str], None]
    """Tell whoever watches how far a long call is; a short line."""
    clock: Clock
