"""Refusals and failures in OpenAI's shape, which its clients turn into their own exceptions.

Source: https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

import msgspec

from fermix.web.v1 import wire

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def body_of(status: int, code: str, message: str, *, param: str | None = None) -> bytes:
    """The JSON body of an answer with this status."""
    return msgspec.json.encode(wire.ErrorBody(wire.ErrorDetail(message, _type_of(status), code, param)))


def _type_of(status: int) -> str:
    return _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
