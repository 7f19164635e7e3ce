"""What a vendor's error means: HTTP status, error object and words become one FailureKind.

Source: https://platform.openai.com/docs/guides/error-codes (statuses and `error.code` values);
https://openrouter.ai/docs/errors (`{"error": {"code": number, "message"}}`, 402 without credit);
the other shapes are what compatible servers answer: `{"error": "text"}`, `{"message", "code"}`,
`{"detail"}`. Not every vendor uses the status one would expect, so words count before it: xAI
answers 400 to a wrong key and 403 or 429 without credit, Anthropic 400 without credit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from fermix.providers.apis.wire import Route
from fermix.providers.port import Failed, FailureKind

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context window|context length"
    r"|available context size|prompt is too long|input is too long|too many (input )?tokens"
    r"|reduce the length of the (messages|prompt)",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|billing|exceeded your current quota|credit balance|payment required"
    r"|insufficient (balance|credits|funds)|(doesn.t|not) have any credits|used all available credits"
    r"|(out of|more) credits|spending limit|key limit exceeded",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content_filter|content_policy|content management policy|safety_violation", re.IGNORECASE
)
_AUTH = re.compile(
    r"invalid_api_key|authentication_error|(incorrect|invalid|malformed) api.key|invalid x-api-key"
    r"|unauthorized|no auth credentials",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"model_not_found|invalid_model|not_found_error|invalid model\b|not a valid model|no such model"
    r"|unknown model|no endpoints found for|not a chat model"
    r"|model\b.{0,150}\bnot (found|exist)",
    re.IGNORECASE,
)
_IMAGE = re.compile(
    r"does(n.t| not) support images?|image inputs?|image_url|process image|images? (is|are) not supported"
    r"|unsupported image|image exceeds|image dimensions exceed",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate_limit|rate limit|too many requests", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

_BY_STATUS = {
    400: FailureKind.INVALID_REQUEST,
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    403: FailureKind.AUTH,
    404: FailureKind.INVALID_REQUEST,
    408: FailureKind.TIMEOUT,
    413: FailureKind.CONTEXT_OVERFLOW,
    429: FailureKind.RATE_LIMITED,
}
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
LONGEST_WAIT_S = 32 * 86_400.0
_ADVICE = {
    FailureKind.AUTH: "Check its key and that the key may use this model.",
    FailureKind.QUOTA: "The account has no credit left.",
    FailureKind.MODEL_UNKNOWN: "Check the model's name.",
    FailureKind.IMAGE_UNSUPPORTED: "The model does not take this image.",
    FailureKind.RATE_LIMITED: "Too many requests for now.",
    FailureKind.CONTEXT_OVERFLOW: "The conversation does not fit into the model's window.",
}


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What an error object says, whatever its shape."""

    message: str
    codes: str
    """Its `code` and `type`, joined."""
    status: int | None
    """A number found as `code` or `status`; None when there is none."""


def on_route(status: int, headers: Mapping[str, str], body: bytes, *, route: Route, now_ms: int) -> Failed:
    """`WireApi.failure` of wires whose errors need nothing of their own."""
    return from_response(status, headers, body, provider=route.provider, now_ms=now_ms)


def from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, provider: str, now_ms: int
) -> Failed:
    """The failure behind a response that is not a 200."""
    facts = read_error(decoded(body))
    kind = _kind(status, facts)
    wait_s = retry_after_s(headers, now_ms=now_ms)
    is_retryable = status in _RETRYABLE_STATUSES and kind is not FailureKind.QUOTA
    message = _words(provider, f"answered {status}", facts.message, kind)
    if status == 404 and kind is FailureKind.INVALID_REQUEST:
        message += " Check the base address, which usually ends in '/v1', and the model's name."
    if wait_s is not None and wait_s >= 1:
        message += f" It asks to wait {_duration(wait_s)}."
    return Failed(kind, message, is_retryable, wait_s, http_status=status)


def from_event(error: object, *, provider: str) -> Failed:
    """The failure an error object inside a stream stands for."""
    facts = read_error(error)
    kind = _kind(facts.status, facts)
    is_retryable = kind in (FailureKind.RATE_LIMITED, FailureKind.PROVIDER_UNAVAILABLE)
    return Failed(kind, _words(provider, "broke off its answer", facts.message, kind), is_retryable)


def retry_after_s(headers: Mapping[str, str], *, now_ms: int) -> float | None:
    """How long a response asks us to wait; None when it does not say.

    `retry-after-ms` is milliseconds and counts first; `retry-after` is seconds or a date. One that is
    longer than any quota lasts is no wait: nobody could ask this provider again.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return believed(milliseconds / 1000)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or not text:
        return believed(seconds)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return believed(max(0.0, moment.timestamp() - now_ms / 1000))
    except (ValueError, OverflowError):
        return None


def believed(seconds: float | None) -> float | None:
    """The wait; None for one beyond belief."""
    return seconds if seconds is not None and seconds <= LONGEST_WAIT_S else None


def read_error(error: object) -> ErrorFacts:
    """The facts in an error object, a text, or a body that wraps either."""
    if isinstance(error, dict):
        inner = error.get("error")
        if isinstance(inner, dict | str) and inner:
            outer = read_error({key: value for key, value in error.items() if key != "error"})
            facts = read_error(inner)
            return ErrorFacts(facts.message or outer.message, f"{facts.codes} {outer.codes}", facts.status)
        message = next((error[key] for key in ("message", "detail", "error") if error.get(key)), "")
        codes = [str(error.get(key) or "") for key in ("code", "type", "status")]
        number = next((int(code) for code in codes if re.fullmatch(r"[1-5]\d\d", code)), None)
        return ErrorFacts(_one_line(message), " ".join(codes).strip(), number)
    return ErrorFacts(_one_line(error or ""), "", None)


def _kind(status: int | None, facts: ErrorFacts) -> FailureKind:
    words = f"{facts.codes} {facts.message}"
    if status in (None, 400, 413, 422, 500) and _OVERFLOW.search(words):
        return FailureKind.CONTEXT_OVERFLOW
    if status in (None, 400, 403, 422) and _REFUSED.search(words):
        return FailureKind.CONTENT_REFUSED
    if status in (None, 400, 402, 403, 429) and _QUOTA.search(words):
        return FailureKind.QUOTA
    if status in (None, 400) and _AUTH.search(words):
        return FailureKind.AUTH
    if status in (None, 400, 404, 415, 422) and _IMAGE.search(words):
        return FailureKind.IMAGE_UNSUPPORTED
    if status in (None, 400, 404, 422) and _MODEL.search(words):
        return FailureKind.MODEL_UNKNOWN
    if status is not None:
        if status >= 500 or status in (409, 425):
            return FailureKind.PROVIDER_UNAVAILABLE
        return _BY_STATUS.get(status, FailureKind.INVALID_REQUEST)
    return FailureKind.RATE_LIMITED if _RATE.search(words) else FailureKind.PROVIDER_UNAVAILABLE


def _words(provider: str, what: str, message: str, kind: FailureKind) -> str:
    said = f": {message!r}" if message else ""
    return f"{provider} {what}{said}. {_ADVICE.get(kind, '')}".rstrip()


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _one_line(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return _UNPRINTABLE.sub(" ", text).strip()[:300]


def decoded(body: bytes) -> object:
    """A body as JSON, else as text; a web page says nothing and becomes empty."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body[:2000].decode("utf-8", "replace")
        return "" if text.lstrip().startswith("<") else text


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e12 else None
