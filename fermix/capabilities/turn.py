"""The facts of a turn on which every effect is decided."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fermix.messages import ConversationKey
from fermix.tasks import Cancel, Deadline
from fermix.trust import Standing


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
