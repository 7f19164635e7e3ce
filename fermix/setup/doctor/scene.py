"""Everything a check may look at; what lies on higher rows is handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fermix.clock import Clock
from fermix.errors import FermixError
from fermix.paths import Home
from fermix.setup.service.service import Service

Call: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Asks a daemon one method and returns its answer; raises what the daemon answered.

Any: what JSON can hold.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of the settings the checks compare the machine with."""

    http_enabled: bool = True
    http_host: str = "127.0.0.1"
    http_port: int = 4030
    provider: str = "local"
    model: str | None = None
    """The model the owner named, of whichever provider."""
    wal_limit_bytes: int = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One examination."""

    home: Home
    environment: Mapping[str, str]
    clock: Clock
    version: str
    command: tuple[str, ...]
    """The words that start this very fermix."""
    is_full: bool
    """Whether checks may take their time."""
    problems: Callable[[], Sequence[FermixError]]
    """Everything wrong with config.toml and the secrets it names."""
    problems_in: Callable[[bytes], Sequence[FermixError]]
    """Everything wrong with these bytes as a config.toml."""
    wanted: Callable[[], Wanted | None]
    """What the settings say now; None when they cannot be read."""
    http_problem: Callable[[], FermixError | None] = lambda: None
    """Why HTTP may not be served as the settings say; None when it may, or they cannot be read."""
    service: Callable[[], Service | None] = lambda: None
    """The service of this home where a unit is installed for it; None where none is."""
    status: Mapping[str, Any] | None = None
    """What the running daemon says of itself; None when none answers."""
    call: Call | None = None
    """Asks the running daemon; None when none answers."""
    silence: FermixError | None = None
    """Why a daemon that is there does not answer; None when none is there, or it does."""
    start: Callable[[], Call] | None = None
    """Starts a private daemon and asks that one; None when none may be started."""

    @property
    def now_s(self) -> float:
        """Seconds since 1970."""
        return self.clock.now_ms() / 1000
