"""Errors of many vendors become one vocabulary."""

from typing import Any

import msgspec
import pytest

from fermix.providers.apis.failures import from_event, from_response, retry_after_s
from fermix.providers.port import FailureKind as Kind
from tests.bot import CHECKOUT

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, Kind.AUTH, False),
        (403, {"error": {"message": "Country not supported"}}, Kind.AUTH, False),
        (402, {"error": "Payment required"}, Kind.QUOTA, False),
        (429, {"error": {"code": "insufficient_quota", "message": "x"}}, Kind.QUOTA, False),
        (429, {"error": {"code": "rate_limit_exceeded", "message": "Slow down"}}, Kind.RATE_LIMITED, True),
        (400, {"error": {"code": "context_length_exceeded"}}, Kind.CONTEXT_OVERFLOW, False),
        (400, {"error": {"type": "exceed_context_size_error", "code": 400}}, Kind.CONTEXT_OVERFLOW, False),
        (400, {"message": "This model's maximum context length is 8192"}, Kind.CONTEXT_OVERFLOW, False),
        (400, {"error": {"code": "content_filter", "message": "x"}}, Kind.CONTENT_REFUSED, False),
        (400, {"detail": [{"loc": ["body"], "msg": "required"}]}, Kind.INVALID_REQUEST, False),
        (404, {"error": "model 'nope' not found"}, Kind.MODEL_UNKNOWN, False),
        (404, {"error": {"message": "Not Found"}}, Kind.INVALID_REQUEST, False),
        (500, {"error": {"message": "boom"}}, Kind.PROVIDER_UNAVAILABLE, True),
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, Kind.PROVIDER_UNAVAILABLE, True),
        (400, {"error": {"message": "image exceeds 5 MB maximum: 6 > 5"}}, Kind.IMAGE_UNSUPPORTED, False),
        (408, {}, Kind.TIMEOUT, True),
    ],
)
def test_a_status_and_its_words_have_one_meaning(
    status: int, body: object, kind: Kind, retryable: bool
) -> None:
    failed = from_response(status, {}, msgspec.json.encode(body), provider="p", now_ms=NOW_MS)
    assert (failed.kind, failed.retryable) == (kind, retryable)
    assert failed.message.startswith(f"p answered {status}")


# Source: bug reports that quote the answers word for word; ids and keys are made up. OpenAI:
# github.com/Aider-AI/aider/issues/2030; OpenRouter: openrouter.ai/docs/errors and
# github.com/sipeed/picoclaw/issues/1790; Mistral: github.com/tmc/langchaingo/issues/1233 and
# github.com/nextcloud/integration_openai/issues/332; xAI: github.com/openai/codex/issues/1352,
# github.com/griptape-ai/griptape-nodes-engine/issues/1079, github.com/continuedev/continue/issues/10373
# and github.com/yihong0618/bilingual_book_maker/issues/464; Ollama:
# github.com/netease-youdao/QAnything/issues/555; Anthropic:
# github.com/anthropics/anthropic-sdk-typescript/issues/618.
VENDOR_ANSWERS = msgspec.json.decode(
    (CHECKOUT / "tests/fixtures/providers/vendor_errors.json").read_bytes()
)


@pytest.mark.parametrize("answer", VENDOR_ANSWERS, ids=lambda answer: answer["name"])
def test_what_vendors_really_answer_is_understood(answer: dict[str, Any]) -> None:
    body = msgspec.json.encode(answer["body"])
    failed = from_response(answer["status"], {}, body, provider="p", now_ms=NOW_MS)
    assert (failed.kind, failed.http_status) == (Kind(answer["kind"]), answer["status"])


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"message": "Internal server error"}, Kind.PROVIDER_UNAVAILABLE, True),
        ({"message": "Our servers are currently overloaded"}, Kind.PROVIDER_UNAVAILABLE, True),
        ({"error": {"code": 429, "message": "Slow down"}}, Kind.RATE_LIMITED, True),
        ({"code": "context_length_exceeded", "message": "x"}, Kind.CONTEXT_OVERFLOW, False),
        ({"type": "insufficient_quota", "message": "x"}, Kind.QUOTA, False),
        ("unauthorized", Kind.AUTH, False),
        (None, Kind.PROVIDER_UNAVAILABLE, True),
        (7, Kind.PROVIDER_UNAVAILABLE, True),
    ],
)
def test_an_error_inside_a_stream_has_the_same_meaning(error: object, kind: Kind, retryable: bool) -> None:
    failed = from_event(error, provider="p")
    assert (failed.kind, failed.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>502</html>", b"\xff\xfe", b"[" * 9000, b"7", b'{"error": null}', b'{"error": [1]}'],
)
def test_a_body_that_makes_no_sense_still_fails_cleanly(body: bytes) -> None:
    failed = from_response(502, {}, body, provider="p", now_ms=NOW_MS)
    assert failed.kind is Kind.PROVIDER_UNAVAILABLE
    assert "<html>" not in failed.message


def test_a_long_message_is_shortened_and_put_on_one_line() -> None:
    body = msgspec.json.encode({"error": {"message": "a\n\x1b[31mb" + "c" * 5000}})
    message = from_response(400, {}, body, provider="p", now_ms=NOW_MS).message
    assert len(message) < 400
    assert "\n" not in message and "\x1b" not in message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "274579000"}, 274_579.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "99999999999"}, None),
        ({"retry-after-ms": "99999999999999"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 99999999999999 23:59:59 GMT"}, None),
        ({"retry-after": "2592000"}, 2_592_000.0),
        ({}, None),
    ],
)
def test_the_wait_is_read_in_its_own_unit(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now_ms=NOW_MS) == seconds


@pytest.mark.parametrize(("seconds", "said"), [("30", "30 s"), ("600", "10 min"), ("274579", "76 h")])
def test_a_long_wait_is_told_in_words(seconds: str, said: str) -> None:
    failed = from_response(429, {"retry-after": seconds}, b"", provider="p", now_ms=NOW_MS)
    assert failed.message.endswith(f"It asks to wait {said}.")
