"""Refusals and failures in OpenAI's shape, which its clients turn into their own exceptions.

Source: https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

import re

import msgspec

from fermix.errors import FermixError
from fermix.web.refusals import Refused, body_of, status_of
from fermix.web.v1.wire import OpenAIError, OpenAIErrorDetail

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class PartRefused(Refused):
    """A request of which one part cannot be served."""

    def __init__(self, code: str, message: str, *, param: str, status: int = 400) -> None:
        super().__init__(status, code, message)
        self.param = param


def shape(error: FermixError) -> OpenAIError:
    """What a refusal's JSON looks like."""
    if isinstance(error.__cause__, msgspec.ValidationError):
        error = unreadable(error.__cause__)
    told = body_of(error).error
    message = told.message if told.hint is None else f"{told.message} ({told.hint})"
    param = error.param if isinstance(error, PartRefused) else None
    return failed(status_of(error), told.code, message, param=param)


def failed(status: int, code: str, message: str, *, param: str | None = None) -> OpenAIError:
    """The JSON of an answer with this status."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return OpenAIError(OpenAIErrorDetail(message, kind, code, param))


def unreadable(error: msgspec.ValidationError) -> Refused:
    """What msgspec says, with the place in the request as OpenAI's clients write it."""
    told, _, place = str(error).partition(" - at `$")
    param = place.rstrip("`").removeprefix(".")
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", told):
        param = f"{param}.{missing[1]}" if param else missing[1]
        return PartRefused("missing_required_parameter", f"{param} is missing.", param=param)
    if not param:
        return Refused(400, "invalid_value", f"The body is not as expected: {told}.")
    return PartRefused("invalid_value", f"{param}: {told[:1].lower()}{told[1:300]}.", param=param)
