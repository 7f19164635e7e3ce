"""What `provider.probe` is asked with, and what it is answered from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import msgspec

from fermix.clock import Clock
from fermix.daemon.sections import Settings
from fermix.providers.port import Provider
from fermix.secret import Secret
from fermix.secrets import Redactor

Name = Annotated[str, msgspec.Meta(max_length=500)]


class ProbeParams(msgspec.Struct):
    """`provider.probe`: nothing for the one in force, else an address or vendor and what belongs to it."""

    base_url: Name | None = None
    name: Name | None = None
    vendor: Name | None = None
    """A known vendor; None for a server with the chat-completions wire."""
    model: Name | None = None
    api_key: Annotated[str, msgspec.Meta(max_length=65_536)] | None = None
    """The secret itself: this socket is its owner's alone."""
    preferred: Annotated[tuple[Name, ...], msgspec.Meta(max_length=50)] = ()
    """Models to take when none is named, the best first."""

    def __repr__(self) -> str:
        return f"ProbeParams(base_url={self.base_url!r})"  # never the key


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeParts:
    """What a probe needs of the daemon."""

    provider: Callable[[], Provider]
    """The one in force."""
    settings: Callable[[], Settings]
    secret: Callable[[str], Secret]
    """The secret behind `@secret:NAME`."""
    redactor: Redactor
    clock: Clock
