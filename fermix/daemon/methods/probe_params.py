"""What `provider.probe` is asked with."""

from __future__ import annotations

from typing import Annotated

import msgspec

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
