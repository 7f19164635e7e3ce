"""What a check saw, and what would repair it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class State(StrEnum):
    """How good what was seen is."""

    OK = "ok"
    WARN = "warn"
    """Works, and should be looked at."""
    FAIL = "fail"
    SKIPPED = "skipped"
    """Could not be looked at; what was seen says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a check has to say."""

    check: str
    state: State
    saw: str
    """One sentence with the values that were seen."""
    hint: str | None = None
    """The command that repairs it; None when nothing is to be done."""
    fix: Callable[[], str] | None = None
    """Repairs it and says what was done; None where the owner must decide.

    Contract: loses nothing, may be done twice, and a kill in its middle leaves nothing worse.
    Raises: FermixError, OSError.
    """


@dataclass(frozen=True, slots=True)
class Topic:
    """Makes the findings of one check."""

    check: str

    def ok(self, saw: str) -> Finding:
        return Finding(self.check, State.OK, saw)

    def skipped(self, saw: str, hint: str | None = None) -> Finding:
        return Finding(self.check, State.SKIPPED, saw, hint)

    def warn(self, saw: str, hint: str | None = None, *, fix: Callable[[], str] | None = None) -> Finding:
        return Finding(self.check, State.WARN, saw, hint, fix)

    def fail(self, saw: str, hint: str | None = None, *, fix: Callable[[], str] | None = None) -> Finding:
        return Finding(self.check, State.FAIL, saw, hint, fix)


def quoted(path: Path) -> str:
    """A path as the commands of hints take it."""
    return shlex.quote(str(path))
