"""The port every model provider fills: one request in, a stream of events out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from fermix.messages import AssistantMessage, ChatMessage, ModelCall, Usage
from fermix.providers.limits import BYTES_PER_TOKEN as BYTES_PER_TOKEN
from fermix.providers.limits import FREE as FREE
from fermix.providers.limits import ModelLimits as ModelLimits
from fermix.providers.limits import Price as Price
from fermix.tasks import Cancel, Deadline


class FailureKind(StrEnum):
    """The closed vocabulary every vendor's errors are mapped to."""

    AUTH = "auth"
    QUOTA = "quota"
    MODEL_UNKNOWN = "model_unknown"
    RATE_LIMITED = "rate_limited"
    CONTEXT_OVERFLOW = "context_overflow"
    CONTENT_REFUSED = "content_refused"
    INVALID_REQUEST = "invalid_request"
    IMAGE_UNSUPPORTED = "image_unsupported"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    TIMEOUT = "timeout"
    TRANSPORT = "transport"
    PROTOCOL = "protocol"
    BUDGET = "budget_used_up"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model."""

    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSchema, ...]
    cancel: Cancel
    deadline: Deadline
    images: Mapping[str, bytes] = field(default_factory=dict)
    """The pictures of the messages by their path; one that is missing here is told as words."""
    effort: str | None = None
    """One of the model's own levels of thinking; None leaves it to the vendor."""
    max_output_tokens: int | None = None
    """Longest answer to this one question; None leaves it at the model's limit."""
    longest_wait_s: float = 20.0
    """A provider that asks for a longer wait is not asked again."""
    conversation_id: str = ""
    """The same for all requests of one conversation, so that a provider finds its cache again."""
    fitted: Callable[[ModelLimits], ModelRequest] | None = None
    """The same question for a model of other limits, as a chain asks it; None: there is only this one."""
    barred: Callable[[str, Price | None], str | None] | None = None
    """Why the provider of this name and price must not be asked, for a chain to ask before each; None: all
    may be."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the visible answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the model's thinking, where it shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """The whole answer; the stream ended the way the protocol says it should."""

    reply: AssistantMessage
    usage: Usage
    stop_reason: str
    """`stop`, `tool_calls` or `length`."""


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer: why, in words for the owner, and whether trying again can help."""

    kind: FailureKind
    message: str
    retryable: bool
    retry_after_s: float | None = None
    """How long the provider asked us to wait; None when it did not say."""
    http_status: int | None = None
    """What the server answered with; None when there was no answer or it was a 200."""


@dataclass(frozen=True, slots=True)
class Called:
    """A request that was answered with a stream has ended, well or not; comes before Done or Failed."""

    call: ModelCall


@dataclass(frozen=True, slots=True)
class Restarted:
    """Another provider begins the answer anew: whoever showed deltas drops them."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a person should know of how the answer comes about, in one short line."""

    text: str


StreamEvent = TextDelta | ReasoningDelta | Called | Restarted | Remark | Done | Failed


class Provider(Protocol):
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """As in the settings."""
        ...

    @property
    def model(self) -> str: ...

    @property
    def limits(self) -> ModelLimits:
        """What fits now; may change between two turns, when the model does."""
        ...

    @property
    def price(self) -> Price | None:
        """What the model that answers now costs; None when that is not known."""
        ...

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """Yield deltas, then exactly one `Done` or `Failed`.

        Contract: a `Called` comes for each request that was answered at all. Never raises for HTTP,
        model, timeout or cancel; those become `Failed`. A stream cut before its finish reason is
        `Failed`, never an answer.
        """
        ...

    def notice(self) -> str | None:
        """What a person should be told once about this provider; None when nothing."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Give back connections and helper processes; a later request opens them again."""
        ...
