"""The port a wire API fills, and what it is told about the vendor it speaks to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fermix.messages import Usage
from fermix.providers.port import Done, Failed, ModelLimits, ModelRequest, Price, StreamEvent
from fermix.secret import Secret

STREAM_LIMIT_BYTES = 16 * 1024 * 1024
"""Largest whole answer, framing included."""
EVENT_LIMIT_BYTES = 4 * 1024 * 1024
"""Largest single event of a stream."""
TEXT_LIMIT_CHARS = 2 * 1024 * 1024
"""Longest visible answer, and longest thinking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """Where vendors of one wire API differ; a field only once two vendors need it."""

    max_tokens_field: str = "max_tokens"
    usage_in_stream: bool = True
    """Whether `stream_options` may be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One model at one vendor."""

    provider: str
    """The name the owner knows it by, for messages."""
    model: str
    quirks: Quirks = field(default_factory=Quirks)
    limits: ModelLimits = field(default_factory=ModelLimits)
    price: Price | None = None


class StreamDecoder(Protocol):
    """Turns the body of one answer into events."""

    @property
    def is_over(self) -> bool:
        """Whether the protocol's own end marker was seen; nothing more will come."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the reason for finishing was seen; only counts and the end marker may follow."""
        ...

    @property
    def usage(self) -> Usage | None:
        """What the provider has counted so far, also of an answer that breaks off; None when nothing."""
        ...

    def feed(self, data: bytes) -> Sequence[StreamEvent]:
        """The deltas in `data`; a Failed as the last one ends the stream.

        Raises: Unreadable.
        """
        ...

    def whole(self, body: bytes) -> Sequence[StreamEvent]:
        """The deltas of an answer that came in one piece instead of as a stream.

        Raises: Unreadable.
        """
        ...

    def end(self) -> Done | Failed:
        """What the stream came to, once its body has ended."""
        ...


class WireApi(Protocol):
    """One protocol: how to ask, how to read the answer, what its errors mean."""

    path: str
    """Where requests go, behind the vendor's base."""

    def headers(self, key: Secret | None) -> dict[str, str]:
        """Request headers; None for `key` when the vendor needs none."""
        ...

    def encode(self, request: ModelRequest, route: Route) -> bytes:
        """The request's body; the same request gives the same bytes."""
        ...

    def decoder(self, request: ModelRequest, route: Route) -> StreamDecoder:
        """A fresh decoder for the answer to `request`."""
        ...

    def failure(
        self, status: int, headers: Mapping[str, str], body: bytes, *, route: Route, now_ms: int
    ) -> Failed:
        """What a response that is not a 200 means."""
        ...
