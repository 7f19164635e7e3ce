"""The port every model provider fills: one request in, a stream of events out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from fermix.messages import AssistantMessage, ChatMessage, Usage
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
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    TIMEOUT = "timeout"
    TRANSPORT = "transport"
    PROTOCOL = "protocol"
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


StreamEvent = TextDelta | ReasoningDelta | Done | Failed


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What fits into one request."""

    takes_tools: bool = True
    prompt_bytes: int | None = None
    """Most bytes of system text and messages together; None when only the window counts."""
    max_output_tokens: int | None = None
    """None leaves it to the vendor."""


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

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """Yield deltas, then exactly one `Done` or `Failed`.

        Contract: never raises for HTTP, model, timeout or cancel; those become `Failed`.
        A stream cut before its finish reason is `Failed`, never an answer.
        """
        ...

    def notice(self) -> str | None:
        """What a person should be told once about this provider; None when nothing."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Give back connections and helper processes; a later request opens them again."""
        ...
