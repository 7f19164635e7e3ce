"""The port a wire API fills, and what it is told about the vendor it speaks to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Protocol

from fermix.errors import Unreadable
from fermix.messages import Usage
from fermix.providers.port import Done, Failed, FailureKind, ModelLimits, ModelRequest, Price, StreamEvent
from fermix.secret import Secret

STREAM_LIMIT_BYTES = 16 * 1024 * 1024
"""Largest whole answer, framing included."""
EVENT_LIMIT_BYTES = 4 * 1024 * 1024
"""Largest single event of a stream."""
TEXT_LIMIT_CHARS = 2 * 1024 * 1024
"""Longest visible answer, and longest thinking."""
BLOCKS_LIMIT = 512
"""Most parts of one answer, where its wire has such."""
COST_LIMIT_USD = 10_000
"""More than one answer can cost."""
TOKENS_LIMIT = 1_000_000_000
"""Most tokens one answer is believed to have taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """Where vendors of one wire API differ; a field only once two vendors need it."""

    max_tokens_field: str = "max_tokens"
    usage_in_stream: bool = True
    """Whether `stream_options` may be sent."""
    has_short_ids: bool = False
    """Whether ids of tool calls are nine letters and digits, as Mistral and its kin want them."""
    takes_cache_key: bool = False
    """Whether `prompt_cache_key` may be sent, which leads one conversation to one cache."""
    takes_output_limit: bool = True
    """Whether the longest answer may be asked for; a sign-in's backend refuses the field."""
    nests_effort: bool = False
    """Whether the level of thinking is asked for as `reasoning.effort` on the chat wire."""
    marks_cache: bool = False
    """Whether the end of what may be cached is marked inside the messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One model at one vendor, as requests and messages name it."""

    provider: str
    """The name the owner knows it by, for messages."""
    model: str
    quirks: Quirks = field(default_factory=Quirks)
    limits: ModelLimits = field(default_factory=ModelLimits)
    price: Price | None = None


def longest_answer(request: ModelRequest, route: Route) -> int | None:
    """Most tokens to ask for, never more than the model gives; None leaves it to the vendor."""
    limits = [most for most in (request.max_output_tokens, route.limits.max_output_tokens) if most]
    return min(limits, default=None)


def add_text(whole: StringIO, text: str) -> None:
    """Lengthen a text of the answer. Raises: Unreadable when it becomes too long."""
    if whole.tell() + len(text) > TEXT_LIMIT_CHARS:
        raise Unreadable(f"The answer is longer than {TEXT_LIMIT_CHARS} characters.")
    whole.write(text)


def number(value: object) -> float | None:
    """The number a server sent, also as text; None for everything else.

    An odd count is no reason to lose the answer beside it.
    """
    if isinstance(value, str) and len(value) <= 40:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # not NaN
        return None
    return value


def tokens(count: object) -> int:
    """A count that can be added up and stored, whatever the server sent."""
    return int(min(max(0, number(count) or 0), TOKENS_LIMIT))


def part(value: object, name: str) -> object:
    """What stands under a name; None where there is nothing of the kind."""
    return value.get(name) if isinstance(value, dict) else None


def usage_of(told: object, *, asked: str, said: str) -> Usage | None:
    """Counts as OpenAI's wires tell them, under these names; None when there are none."""
    if number(part(told, asked)) is None and number(part(told, said)) is None:
        return None
    read, thought = part(told, f"{asked}_details"), part(told, f"{said}_details")
    return Usage(
        input_tokens=tokens(part(told, asked)),
        output_tokens=tokens(part(told, said)),
        cached_tokens=tokens(part(read, "cached_tokens")),
        written_tokens=tokens(part(read, "cache_write_tokens")),
        reasoning_tokens=tokens(part(thought, "reasoning_tokens")),
    )


def micro_usd(told: object) -> int | None:
    """A cost as it is stored; None for none, and for what cannot be one."""
    usd = number(told)
    return math.ceil(usd * 1_000_000 - 1e-6) if usd is not None and 0 <= usd < COST_LIMIT_USD else None


def stop_reason(*, was_cut: bool, has_calls: bool) -> str:
    """As `Done` has it. Servers say "stop" beside tool calls, so the calls decide and not their reason."""
    return "length" if was_cut else "tool_calls" if has_calls else "stop"


def broken_off(provider: str) -> Failed:
    """What a stream came to that ended without saying why."""
    message = f"{provider} broke off before its answer was whole."
    return Failed(FailureKind.TRANSPORT, message, retryable=True)


def unreadable(data: bytes, error: Exception) -> Unreadable:
    """What to raise when a piece of an answer is not what its protocol says."""
    shown = data[:200].decode("utf-8", "replace")
    return Unreadable(f"A piece of the answer cannot be read ({error}): {shown!r}.")


def json_headers(key: Secret | None, *, accept: str) -> dict[str, str]:
    """Of a request with a JSON body and, where there is one, the key as a bearer token."""
    headers = {"Content-Type": "application/json", "Accept": accept}
    if key is not None:
        headers["Authorization"] = f"Bearer {key.reveal()}"
    return headers


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

    @property
    def cost_micro_usd(self) -> int | None:
        """What the provider itself says the answer costs; None when it does not."""
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
