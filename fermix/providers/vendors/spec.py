"""A vendor as data: where it is, which wire it speaks and how its dialect differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fermix.providers.apis.wire import Quirks


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorSpec:
    """What is the same for all of a vendor's models."""

    name: str
    api: str
    """A key of `build.APIS`."""
    base_url: str | None
    """None: whoever uses it must say."""
    quirks: Quirks = field(default_factory=Quirks)
    quirks_of: Callable[[str, Quirks], Quirks] | None = None
    """What one model needs beside that; None where all are alike."""
    list_path: str = "/models"
    """Where the server says which models it has."""
    shows_path: str | None = None
    """Where it tells of one model that is named in a POST; None reads that from the list."""
    window_tokens: int | None = None
    """Asked for where the wire lets us choose and nothing else says; None elsewhere."""
    trim: str = ""
    """An end of the address that people copy along and that does not belong there."""
