"""Asks a provider for real, once, and says in one word what a person would have to correct."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from fermix.clock import Clock
from fermix.errors import (
    AddressRefused,
    DeadlineExceeded,
    NetworkError,
    RedirectRefused,
    Unreachable,
)
from fermix.messages import UserMessage
from fermix.net.door import OwnerDoor
from fermix.providers.apis.wire import Route
from fermix.providers.build import spec_of
from fermix.providers.client import HttpProvider
from fermix.providers.model_names import nearest, pick, read_names
from fermix.providers.port import (
    Called,
    Failed,
    FailureKind,
    ModelRequest,
    Provider,
    Remark,
    StreamEvent,
    ToolSchema,
)
from fermix.providers.settings import ANY_SERVER, NamedProviderSettings
from fermix.providers.vendors.remote import route_of, wire_of
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline

PROBE_S = 30.0
"""Longest a whole probe takes."""
_MODELS_S = 10.0
_MODELS_LIMIT_BYTES = 8 * 1024 * 1024
_QUESTION = UserMessage("Answer with the one word: ok")
_TOOL = ToolSchema(
    "current_time", "The time now.", {"type": "object", "properties": {}, "additionalProperties": False}
)
"""What an agent's model must take; one that refuses it is asked again without."""


class ProbeStatus(StrEnum):
    """What came of a probe."""

    OK = "ok"
    AUTH = "auth"
    """The key is wrong, missing, or may not do this."""
    ADDRESS = "address"
    """Nothing is there, or something that is no model server."""
    MODEL_UNKNOWN = "model_unknown"
    QUOTA = "quota"
    """The account has no credit."""
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    FAILED = "failed"


_BY_KIND = {
    FailureKind.AUTH: ProbeStatus.AUTH,
    FailureKind.QUOTA: ProbeStatus.QUOTA,
    FailureKind.MODEL_UNKNOWN: ProbeStatus.MODEL_UNKNOWN,
    FailureKind.RATE_LIMITED: ProbeStatus.RATE_LIMITED,
    FailureKind.TIMEOUT: ProbeStatus.TIMEOUT,
    FailureKind.PROTOCOL: ProbeStatus.ADDRESS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A provider that is not configured yet, or is."""

    name: str
    base_url: str
    model: str | None
    """None picks one: of `preferred` what the server has, else its first that can chat."""
    preferred: tuple[str, ...] = ()
    key: Secret | None = None
    vendor: str = ANY_SERVER
    """A key of `build.VENDORS` but `local`."""
    table: NamedProviderSettings = field(default_factory=NamedProviderSettings)
    """What else its owner says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a person is told."""

    status: ProbeStatus
    message: str
    hint: str | None = None
    """What to do about it; None when it is good."""
    latency_ms: int = 0
    """Until the first word of the answer came, or the failure."""
    model: str | None = None
    """The model that was asked; None when it did not come to that."""
    models: tuple[str, ...] = ()
    """Names the server gave, at most 200; empty when it does not tell."""
    takes_tools: bool = True
    """Whether the model took a tool along with the question."""


def probe(candidate: Candidate, *, cancel: Cancel, deadline: Deadline, clock: Clock) -> ProbeResult:
    """What the candidate answers to one small question; nothing is kept of it.

    Contract: never raises for what the address, the key or the model do; `cancel` ends it.
    Raises: Cancelled.
    """
    key = candidate.key
    if key is not None and not _fits_in_a_header(key):
        told = "The key has blanks, line ends or special characters in it."
        return ProbeResult(status=ProbeStatus.AUTH, message=told, hint="Copy the key again, all of it.")
    spec = spec_of(candidate.vendor)
    base = candidate.base_url.rstrip("/")
    try:
        door = OwnerDoor(
            base.removesuffix(spec.trim) if spec.trim else base, connect_timeout_s=10.0, kept_connections=1
        )
    except AddressRefused as error:
        hint = "An address looks like https://host/v1"
        return ProbeResult(status=ProbeStatus.ADDRESS, message=error.message, hint=hint)
    try:
        return _Probe(candidate, door, cancel, deadline, clock).run()
    finally:
        door.close()


def probe_running(provider: Provider, *, cancel: Cancel, deadline: Deadline, clock: Clock) -> ProbeResult:
    """The same question to a provider that is there already, such as the model on this machine.

    Contract: as `probe`.
    """
    request = ModelRequest(system="", messages=(_QUESTION,), tools=(), cancel=cancel, deadline=deadline)
    began_s = clock.monotonic_s()
    failed = first_answer(provider.stream(request))
    cancel.check()
    latency_ms = int((clock.monotonic_s() - began_s) * 1000)
    takes_tools = provider.limits.takes_tools
    if failed is None:
        message = f"{provider.name} answers with {provider.model}."
        return ProbeResult(
            status=ProbeStatus.OK,
            message=message,
            latency_ms=latency_ms,
            model=provider.model,
            takes_tools=takes_tools,
        )
    return ProbeResult(
        status=status_of(failed),
        message=failed.message,
        hint="fermix logs -n 50",
        latency_ms=latency_ms,
        model=provider.model,
        takes_tools=takes_tools,
    )


def first_answer(events: Iterator[StreamEvent]) -> Failed | None:
    """The failure a stream begins with; None as soon as it begins with anything else."""
    first = next((event for event in events if not isinstance(event, Called | Remark)), None)
    if first is None:
        return Failed(FailureKind.PROTOCOL, "It gave no answer.", retryable=False)
    return first if isinstance(first, Failed) else None


def status_of(failed: Failed) -> ProbeStatus:
    """What a failure means to who set it up."""
    if failed.kind is FailureKind.INVALID_REQUEST and failed.http_status in (404, 405):
        return ProbeStatus.ADDRESS
    return _BY_KIND.get(failed.kind, ProbeStatus.FAILED)


class _Probe:
    """One probe on its way."""

    def __init__(
        self, candidate: Candidate, door: OwnerDoor, cancel: Cancel, deadline: Deadline, clock: Clock
    ) -> None:
        self._candidate = candidate
        self._spec = spec_of(candidate.vendor)
        self._wire = wire_of(self._spec)
        self._door = door
        self._host = door.address.host
        self._cancel = cancel
        self._deadline = deadline
        self._clock = clock
        self._models: tuple[str, ...] = ()
        self._has_list = False
        self._refusal: ProbeResult | None = None
        """What the list of models came to, if it was not a list."""

    def run(self) -> ProbeResult:
        try:
            self._models = self._list_models()
        except (Unreachable, RedirectRefused) as error:
            return self._address(error.message)
        except DeadlineExceeded:
            pass  # a list may be long in coming; the question decides
        model = self._candidate.model or pick(self._models, self._candidate.preferred)
        if model is None:
            return self._refusal or self._nameless()
        takes_tools = self._candidate.table.takes_tools
        failed, latency_ms = self._ask(model, (_TOOL,) if takes_tools else ())
        if failed is not None and _is_about_tools(failed):
            failed, latency_ms = self._ask(model, ())
            takes_tools = False
        if failed is None:
            return ProbeResult(
                status=ProbeStatus.OK,
                message=f"{self._candidate.name} answers with {model}.",
                latency_ms=latency_ms,
                model=model,
                models=self._models,
                takes_tools=takes_tools,
            )
        result = self._failed(failed, model, latency_ms)
        refusal = self._refusal
        if result.status is ProbeStatus.FAILED and refusal and refusal.status is ProbeStatus.ADDRESS:
            return refusal  # neither a list nor an answer: no model server at all
        return result

    def _list_models(self) -> tuple[str, ...]:
        """Names the server has; empty when it does not tell, `_refusal` then says why.

        Source: https://platform.openai.com/docs/api-reference/models/list
        Raises: Unreachable, RedirectRefused, DeadlineExceeded, Cancelled.
        """
        try:
            response = self._door.send(
                "GET",
                self._spec.list_path,
                None,
                headers={**self._wire.headers(self._candidate.key), "Accept": "application/json"},
                cancel=self._cancel,
                deadline=self._deadline.sooner(_MODELS_S),
                idle_timeout_s=_MODELS_S,
                limit_bytes=_MODELS_LIMIT_BYTES,
            )
            with response:
                body = response.read_all()
                status, headers = response.status, response.headers
        except (Unreachable, RedirectRefused):
            raise
        except NetworkError as error:
            self._refusal = self._address(error.message)
            return ()
        if status == 200:
            names = read_names(body)
            if names is not None:
                self._has_list = True
                return names
            self._refusal = self._address(f"{self._door.address.origin} does not answer as a model server.")
        elif status in (401, 403):
            route = Route(provider=self._candidate.name, model="")
            failed = self._wire.failure(status, headers, body, route=route, now_ms=self._clock.now_ms())
            self._refusal = self._failed(failed, None, 0)
        return ()

    def _ask(self, model: str, tools: tuple[ToolSchema, ...]) -> tuple[Failed | None, int]:
        """The failure, None for an answer, and how long it took to begin, in ms."""
        provider = HttpProvider(
            route_of(self._spec, self._candidate.name, model, self._candidate.table, host=self._host),
            self._wire,
            self._door,
            key=lambda: self._candidate.key,
            idle_timeout_s=PROBE_S,
            timeout_s=PROBE_S,
            clock=self._clock,
        )
        request = ModelRequest(
            system="", messages=(_QUESTION,), tools=tools, cancel=self._cancel, deadline=self._deadline
        )
        began_s = self._clock.monotonic_s()
        events = provider.attempt(request, self._deadline)
        try:
            failed = first_answer(events)
        finally:
            events.close()  # an answer that has begun is enough; the rest would only cost
        self._cancel.check()
        return failed, int((self._clock.monotonic_s() - began_s) * 1000)

    def _failed(self, failed: Failed, model: str | None, latency_ms: int) -> ProbeResult:
        status = status_of(failed)
        return ProbeResult(
            status=status,
            message=failed.message,
            hint=self._hint(status, model),
            latency_ms=latency_ms,
            model=model,
            models=self._models,
        )

    def _hint(self, status: ProbeStatus, model: str | None) -> str:
        match status:
            case ProbeStatus.AUTH:
                return "Check the key: all of it, of this provider, and not revoked."
            case ProbeStatus.ADDRESS:
                end = "" if self._spec.trim else "; it usually ends in /v1"
                return f"Check that its server runs, and the address {self._candidate.base_url}{end}"
            case ProbeStatus.MODEL_UNKNOWN:
                near = nearest(model or "", self._models)
                return f"It has: {', '.join(near)}" if near else "Name a model that this provider has."
            case ProbeStatus.QUOTA:
                return "Add credit to the account of this key, or take another provider."
            case ProbeStatus.RATE_LIMITED:
                return "Wait a little and try again."
        return "Try again; if it stays, look at the provider's status page."

    def _address(self, message: str) -> ProbeResult:
        return ProbeResult(
            status=ProbeStatus.ADDRESS, message=message, hint=self._hint(ProbeStatus.ADDRESS, None)
        )

    def _nameless(self) -> ProbeResult:
        what = "has no model that can chat" if self._has_list else "does not say which models it has"
        return ProbeResult(
            status=ProbeStatus.MODEL_UNKNOWN,
            message=f"{self._candidate.name} {what}.",
            hint="Name the model it should be asked for.",
            models=self._models,
        )


def _is_about_tools(failed: Failed) -> bool:
    is_refusal = failed.kind is FailureKind.INVALID_REQUEST
    return is_refusal and ("tool" in failed.message.lower() or "function" in failed.message.lower())


def _fits_in_a_header(key: Secret) -> bool:
    text = key.reveal()
    return bool(text) and text.isascii() and text.isprintable() and " " not in text
