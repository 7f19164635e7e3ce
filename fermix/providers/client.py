"""A provider over HTTP: one request through the owner's door, its answer as events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from msgspec import structs

from fermix.clock import Clock, SystemClock
from fermix.errors import (
    Cancelled,
    ConnectionLost,
    DeadlineExceeded,
    FermixError,
    IssuerBusy,
    NetworkError,
    ProviderError,
    ResponseTooLarge,
    Unreachable,
    Unreadable,
)
from fermix.messages import ModelCall, Usage
from fermix.net.door import OwnerDoor
from fermix.net.response import Response
from fermix.providers.apis.wire import STREAM_LIMIT_BYTES, Route, StreamDecoder, WireApi
from fermix.providers.port import (
    BYTES_PER_TOKEN,
    Called,
    Done,
    Failed,
    FailureKind,
    ModelRequest,
    ReasoningDelta,
    Remark,
    StreamEvent,
    TextDelta,
)
from fermix.providers.retry import retried
from fermix.secret import Secret
from fermix.tasks import Deadline

log = logging.getLogger(__name__)

_ERROR_BODY_BYTES = 64 * 1024
_TAIL_WAIT_S = 5.0
"""How long a finished answer may keep its end marker back."""


class HttpProvider:
    """One model behind one address, on one wire API."""

    def __init__(
        self,
        route: Route,
        api: WireApi,
        door: OwnerDoor,
        *,
        key: Callable[[], Secret | None],
        idle_timeout_s: float,
        timeout_s: float,
        clock: Clock | None = None,
        effort: str | None = None,
    ) -> None:
        """`key` is asked for each request, so that a changed secret counts at once.

        `effort` is asked for where a question names none itself; None leaves it to the vendor.
        """
        self._route = route
        self.name = route.provider
        self.model = route.model
        self.limits = route.limits
        self.price = route.price
        self._api = api
        self._door = door
        self._key = key
        self._idle_timeout_s = idle_timeout_s
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._effort = effort
        self._told_of_window = False

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """See `Provider.stream`."""
        deadline = request.deadline.sooner(self._timeout_s)
        return retried(
            lambda: self.attempt(request, deadline),
            cancel=request.cancel,
            deadline=deadline,
            longest_wait_s=request.longest_wait_s,
        )

    def attempt(self, request: ModelRequest, deadline: Deadline) -> Generator[StreamEvent, None, None]:
        """As `stream`, asked only once."""
        try:
            yield from self._answer(request, deadline)
        except FermixError as error:
            yield failed_from(error, self.name, is_over=deadline.is_over())

    def take(self, route: Route) -> None:
        """Ask by this route from the next question on: more is known of the same model."""
        self._route = route
        self.limits = route.limits
        self.price = route.price

    def notice(self) -> str | None:
        return None

    def stop(self, timeout_s: float) -> None:
        """End the kept connections."""
        self._door.close()

    def _answer(self, request: ModelRequest, deadline: Deadline) -> Iterator[StreamEvent]:
        if request.effort is None and self._effort is not None:
            request = replace(request, effort=self._effort)
        try:
            body = self._api.encode(request, self._route)
        except UnicodeEncodeError as error:
            message = f"The request holds text that is not Unicode ({error.reason})."
            yield Failed(FailureKind.INVALID_REQUEST, message, retryable=False)
            return
        started_ms = self._clock.now_ms()
        response = self._door.send(
            "POST",
            self._api.path,
            body,
            headers=self._api.headers(self._key()),
            cancel=request.cancel,
            deadline=deadline,
            idle_timeout_s=self._idle_timeout_s,
            limit_bytes=STREAM_LIMIT_BYTES,
        )
        with response:
            if response.status != 200:
                text = _error_body(response)
                yield self._api.failure(
                    response.status, response.headers, text, route=self._route, now_ms=self._clock.now_ms()
                )
                return
            decoder = self._api.decoder(request, self._route)
            sent = max(0, len(body) - self._picture_bytes(request))
            yield from self._billed(response, decoder, sent, started_ms=started_ms, deadline=deadline)

    def _picture_bytes(self, request: ModelRequest) -> int:
        """What of a request is pictures, which are not counted by their letters."""
        return sum(len(data) * 4 // 3 for data in request.images.values()) if self.limits.sees_images else 0

    def _billed(
        self,
        response: Response,
        decoder: StreamDecoder,
        sent_bytes: int,
        *,
        started_ms: int,
        deadline: Deadline,
    ) -> Iterator[StreamEvent]:
        """The answer's events, with what it took in front of its end."""
        said_chars = 0
        end: Done | Failed
        try:
            for event in self._read(response, decoder):
                if isinstance(event, Done | Failed):
                    end = event
                    break
                if isinstance(event, TextDelta | ReasoningDelta):
                    said_chars += len(event.text)
                yield event
            else:
                end = decoder.end()
        except FermixError as error:
            end = failed_from(error, self.name, is_over=deadline.is_over())
        if isinstance(end, Done) and (remark := self._dropped(end, sent_bytes)):
            yield remark
        counted = decoder.usage
        told = decoder.cost_micro_usd
        said_tokens = -(-said_chars // BYTES_PER_TOKEN)
        usage = counted or Usage(sent_bytes // BYTES_PER_TOKEN, said_tokens)
        is_short = isinstance(end, Failed) and usage.output_tokens < said_tokens
        if is_short:
            # Some count the answer at its end only, and this one has none.
            usage = structs.replace(usage, output_tokens=said_tokens)
        yield Called(
            ModelCall(
                provider=self.name,
                model=self.model,
                usage=usage,
                is_estimated=counted is None or is_short,
                cost_micro_usd=self.price.cost(usage) if told is None and self.price else told,
                outcome="done" if isinstance(end, Done) else end.kind.value,
                started_ms=started_ms,
                ended_ms=self._clock.now_ms(),
            )
        )
        yield end

    def _read(self, response: Response, decoder: StreamDecoder) -> Iterator[StreamEvent]:
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == "application/json":
            yield from decoder.whole(response.read_all())
        elif media_type == "text/html":
            raise Unreadable("It answered with a web page; the base address is probably wrong.")
        else:
            yield from self._read_stream(response, decoder)

    def _read_stream(self, response: Response, decoder: StreamDecoder) -> Iterator[StreamEvent]:
        while not decoder.is_over:
            try:
                data = response.piece(_TAIL_WAIT_S if decoder.is_finished else None)
            except (ConnectionLost, DeadlineExceeded):
                if decoder.is_finished:
                    return
                raise
            if not data:
                return
            yield from joined(decoder.feed(data))

    def _dropped(self, done: Done, sent_bytes: int) -> Remark | None:
        """What to tell once when far fewer tokens were read than sent: the server cut the front off."""
        counted = done.usage.input_tokens
        if self._told_of_window or not counted or sent_bytes <= 8_000 or sent_bytes / 12 <= counted:
            return None
        self._told_of_window = True
        message = (
            f"{self.name} counted {counted} tokens in a request of {sent_bytes} bytes: its context is too "
            "small and it silently dropped the beginning. Raise the server's context length."
        )
        log.warning("%s", message)
        return Remark(message)


def joined(events: Sequence[StreamEvent]) -> Iterator[StreamEvent]:
    """What arrived together as one delta of each kind: a server that sends letters must not cost us
    an event for each.
    """
    for kind, neighbours in groupby(events, type):
        if kind is TextDelta or kind is ReasoningDelta:
            yield kind("".join(event.text for event in neighbours if isinstance(event, kind)))
        else:
            yield from neighbours


def _error_body(response: Response) -> bytes:
    """The first part of an error's body; what cannot be read is left out."""
    body = b""
    try:
        while len(body) < _ERROR_BODY_BYTES and (piece := response.piece(_TAIL_WAIT_S)):
            body += piece
    except (NetworkError, DeadlineExceeded):
        log.debug("An error response broke off")
    return body[:_ERROR_BODY_BYTES]


def failed_from(error: FermixError, name: str, *, is_over: bool) -> Failed:
    """What a failure below the wire means to the one who asked."""
    message = f"{name}: {error.message}"
    match error:
        case Cancelled():
            return Failed(FailureKind.CANCELLED, error.message, retryable=False)
        case DeadlineExceeded():
            return Failed(FailureKind.TIMEOUT, message, retryable=not is_over)
        case Unreachable() | IssuerBusy():
            return Failed(FailureKind.PROVIDER_UNAVAILABLE, message, retryable=True)
        case ConnectionLost():
            return Failed(FailureKind.TRANSPORT, message, retryable=True)
        case Unreadable() | ResponseTooLarge():
            return Failed(FailureKind.PROTOCOL, message, retryable=False)
        case NetworkError():
            return Failed(FailureKind.INVALID_REQUEST, message, retryable=False)
    hint = f" Try: {error.hint}" if error.hint else ""
    kind = FailureKind.PROVIDER_UNAVAILABLE if isinstance(error, ProviderError) else FailureKind.AUTH
    return Failed(kind, message + hint, retryable=False)
