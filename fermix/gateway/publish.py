"""Turns what the agent yields into the named events that watchers are sent."""

from __future__ import annotations

from collections.abc import Sequence

from fermix.agent.events import (
    AgentEvent,
    Corrected,
    Notice,
    PhaseChanged,
    Planned,
    ReasoningDelta,
    Replied,
    TextDelta,
    ToolCalled,
    ToolReplied,
    TurnEnded,
)
from fermix.agent.plan import Plan, plan_of
from fermix.clock import Clock
from fermix.conversations import StoredMessage
from fermix.gateway.watch import TurnLog
from fermix.messages import AssistantMessage, ToolCall, ToolMessage, Usage

PROGRESS_PAUSE_S = 0.5
PROGRESS_LENGTH = 200


def publish(log: TurnLog, event: AgentEvent) -> None:
    """Add the event to the turn's log under its name on the wire."""
    match event:
        case TextDelta(text):
            log.publish("text_delta", text=text)
        case ReasoningDelta(text):
            log.publish("reasoning_delta", text=text)
        case PhaseChanged(phase, decision):
            log.publish("phase_change", phase=phase.value, decision=decision)
        case Planned(plan):
            publish_plan(log, plan)
        case Corrected(text):
            log.publish("correction", text=text)
        case Replied(reply):
            for call in reply.tool_calls:
                log.publish("tool_call_start", call_id=call.id, name=call.name)
        case ToolCalled(call):
            _publish_call(log, call)
        case ToolReplied(result):
            _publish_result(log, result)
        case Notice(text):
            log.publish("notice", text=text)
        case TurnEnded(status, text, usage, error_code, cost):
            log.publish("done", **done(status.value, text, usage, error_code, cost_micro_usd=cost))


class ProgressLine:
    """Shows a long tool call's latest line, often enough to see life and no oftener."""

    def __init__(self, log: TurnLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._next_s = 0.0

    def __call__(self, text: str) -> None:
        now_s = self._clock.monotonic_s()
        if now_s >= self._next_s and (line := text.strip()):
            self._next_s = now_s + PROGRESS_PAUSE_S
            self._log.publish("progress", text=line.rpartition("\n")[2][-PROGRESS_LENGTH:])


def publish_plan(log: TurnLog, plan: Plan) -> None:
    """Add the list of steps as it is now."""
    steps = [{"text": step, "is_done": index < plan.done} for index, step in enumerate(plan.steps)]
    log.publish("plan", steps=steps)


def publish_steps(log: TurnLog, steps: Sequence[StoredMessage]) -> None:
    """Add the whole of each durable step, for watchers that follow a turn into its next life."""
    for step in steps:
        message = step.message
        if isinstance(message, AssistantMessage):
            if message.text:
                log.publish("text_delta", text=message.text)
            for call in message.tool_calls:
                log.publish("tool_call_start", call_id=call.id, name=call.name)
                _publish_call(log, call)
        elif isinstance(message, ToolMessage):
            _publish_result(log, message)
    if (plan := plan_of([step.message for step in steps])) is not None:
        publish_plan(log, plan)


def done(
    status: str, text: str, usage: Usage, error_code: str | None, *, cost_micro_usd: int | None = 0
) -> dict[str, object]:
    """The data of the last event; `error` is there only when the turn did not complete.

    `cost_micro_usd`: None when the price of one of its calls is not known.
    """
    data: dict[str, object] = {
        "status": status,
        "text": text,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_micro_usd": cost_micro_usd,
        },
    }
    if error_code is not None:
        data["error"] = {"code": error_code, "message": text, "hint": None}
    return data


def _publish_call(log: TurnLog, call: ToolCall) -> None:
    log.publish("tool_call_complete", call_id=call.id, name=call.name, arguments=call.arguments)


def _publish_result(log: TurnLog, result: ToolMessage) -> None:
    log.publish(
        "tool_result", call_id=result.call_id, name=result.name, text=result.text, is_error=result.is_error
    )
