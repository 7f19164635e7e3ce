"""A command to run and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fermix.native import Limits
from fermix.trust import Standing

NO_LIMITS = Limits()
LEAST = Standing()


class Ending(StrEnum):
    """Why a command is over."""

    EXIT = "exit"
    """It ended by itself."""
    TIMEOUT = "timeout"
    OUTPUT_CAP = "output_cap"
    """It printed more than it may."""
    CANCELLED = "cancelled"
    STALLED = "stalled"
    """Whoever watched its output did not take it in time."""
    FAILED_TO_START = "failed_to_start"
    """It was never executed; the output says why."""
    LOST = "lost"
    """Its monitor was killed, by the command or from outside; the rest was swept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with all it may use."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    """All of it: nothing is added but FERMIX_COMMAND, by which leftovers are found."""
    timeout_s: float
    output_limit_bytes: int = 1024 * 1024
    stdin: bytes = b""
    """Written to it, then closed; empty is /dev/null."""
    limits: Limits = NO_LIMITS
    standing: Standing = LEAST
    """Of the turn it runs for; what its processes ask of the daemon is judged by it, unattended."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended."""

    output: str
    """stdout and stderr as they came, undecodable bytes replaced."""
    exit_code: int | None
    """None when a signal ended it or it never ran."""
    signal: int | None
    """The signal that ended it, None when none did."""
    ended: Ending
    is_cut: bool
    """It printed more than `output`."""
    duration_ms: int
