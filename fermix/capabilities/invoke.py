"""The boundary between a model's wish and a tool: trust first, then the call, then an honest result."""

from __future__ import annotations

import logging
from collections.abc import Callable

from fermix import events
from fermix.capabilities.context import ToolContext
from fermix.capabilities.registry import Registry
from fermix.capabilities.turn import TurnFacts
from fermix.errors import Cancelled, DeadlineExceeded, ModelError
from fermix.messages import ToolCall, ToolMessage

log = logging.getLogger(__name__)


def invoke(
    call: ToolCall,
    context: ToolContext,
    *,
    registry: Registry,
    redact: Callable[[str], str],
    result_limit_bytes: int,
    keep: Callable[[ToolCall, TurnFacts, str], str] | None = None,
) -> ToolMessage:
    """The result of one call, as the model will read it; never raises for what a tool did.

    `keep` stores the whole of one that is cut and gives the id it is found by, an empty one when it
    could not; None keeps nothing.
    Raises: Cancelled when the turn was stopped.
    """
    events.emit("tool.started", turn_id=context.turn.id, call_id=call.id, tool=call.name)
    try:
        context.turn.cancel.check()
        if call.broken is not None:
            text, is_error = call.broken, True
        else:
            tool = registry.reach(call.name, context.turn.standing)
            text, is_error = tool.run(context, call.arguments), False
    except (ModelError, DeadlineExceeded) as error:
        text, is_error = _for_the_model(error), True
    except Cancelled:
        raise
    except Exception as error:
        # A tool's own bug must not end the turn: the model is told, the owner finds the trace in the log.
        log.exception("Tool %s failed in a way it should not", call.name)
        text, is_error = f"{call.name} failed inside fermix: {type(error).__name__}.", True
    events.emit("tool.ended", turn_id=context.turn.id, call_id=call.id, tool=call.name, is_error=is_error)
    # A file name may hold bytes that are no text; what is stored and sent on must be.
    clean = redact(text).encode(errors="replace").decode()
    id = ""
    if keep is not None and len(clean) > result_limit_bytes // 4 and _is_longer(clean, result_limit_bytes):
        id = keep(call, context.turn, clean)
    return ToolMessage(call.id, call.name, cut(clean, result_limit_bytes, id), is_error, id)


def cut(text: str, limit_bytes: int, id: str = "") -> str:
    """`text` in at most about `limit_bytes` of UTF-8, its middle replaced by a line that says so.

    `id` is where the whole is kept, empty when it is not.
    """
    encoded = text.encode()
    if len(encoded) <= limit_bytes:
        return text
    half = limit_bytes // 2
    head = encoded[:half].decode(errors="ignore")
    tail = encoded[-half:].decode(errors="ignore")
    left_out = len(encoded) - len(head.encode()) - len(tail.encode())
    where = f'; tool_result_recall reads them, id "{id}"' if id else ""
    return f"{head}\n[… {left_out} of {len(encoded)} bytes left out here{where} …]\n{tail}"


def _is_longer(text: str, limit_bytes: int) -> bool:
    return len(text) > limit_bytes or len(text.encode()) > limit_bytes


def _for_the_model(error: ModelError | DeadlineExceeded) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message
