"""The boundary around a call: trust, honest results, no secrets, no fault that ends a turn."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from fermix.capabilities.context import ToolContext
from fermix.capabilities.invoke import cut, invoke
from fermix.capabilities.registry import Registry
from fermix.capabilities.tool import Tool, tool
from fermix.capabilities.turn import TurnFacts
from fermix.errors import Cancelled, DeadlineExceeded, ToolDenied, ToolFailed, ToolRetry
from fermix.messages import ToolCall, ToolMessage
from fermix.secret import Secret
from fermix.secrets import Redactor
from fermix.tasks import Cancel
from fermix.trust import OPERATOR_ATTENDED, Policy, Standing, Trust
from tests.fakes import call, tool_context, turn_facts

REACHED = {
    # the rows of the trust table: what each standing may reach
    (Trust.DENIED, True): set(),
    (Trust.DENIED, False): set(),
    (Trust.GUEST, True): {Policy.READ_ONLY},
    (Trust.GUEST, False): {Policy.READ_ONLY},
    (Trust.OPERATOR, True): set(Policy),
    (Trust.OPERATOR, False): set(Policy) - {Policy.GUI_CONTROL},
}


def tool_of(policy: Policy) -> Tool:
    def act(ctx: ToolContext) -> str:
        """Act."""
        return "done"

    act.__name__ = policy.value
    return tool(policy=policy)(act)


ALL = Registry(tool_of(policy) for policy in Policy)


def run(
    function=None,
    *,
    made: ToolCall | None = None,
    standing: Standing = OPERATOR_ATTENDED,
    registry: Registry | None = None,
    redact=str,
    limit: int = 10_000,
    cancel: Cancel | None = None,
) -> ToolMessage:
    if function is not None:
        function.__name__ = "act"
        function.__doc__ = "Act."
        function.__annotations__ = {"ctx": ToolContext, "return": str}
        registry = Registry([tool(policy=Policy.READ_ONLY)(function)])
    context = tool_context(turn_facts(Path("/"), standing=standing, cancel=cancel))
    return invoke(made or call("act"), context, registry=registry, redact=redact, result_limit_bytes=limit)


@pytest.mark.parametrize(
    ("trust", "attended", "tainted"), list(product(Trust, [True, False], [True, False]))
)
@pytest.mark.parametrize("policy", Policy)
def test_standing_reaches_exactly_its_row_of_the_table(trust, attended, tainted, policy) -> None:
    standing = Standing(trust, attended=attended, tainted=tainted)
    is_reached = policy in REACHED[trust, attended]

    result = run(registry=ALL, made=call(policy.value), standing=standing)

    assert result.is_error is not is_reached
    assert (policy.value in [seen.name for seen in ALL.visible(standing)]) is is_reached


@pytest.mark.parametrize("policy", Policy)
def test_missing_trust_is_a_guest(policy: Policy) -> None:
    assert Standing().may_reach(policy) is (policy is Policy.READ_ONLY)


def test_refusal_says_which_class_and_who() -> None:
    result = run(registry=ALL, made=call("exec"), standing=Standing())

    assert result.text == "'exec' is a exec tool; a guest turn may not use it."


def test_unknown_tool_is_answered_with_the_nearest_within_reach() -> None:
    assert "Did you mean 'network'?" in run(registry=ALL, made=call("netwrok")).text
    text = run(registry=ALL, made=call("netwrok"), standing=Standing()).text
    assert text == "No tool named 'netwrok'. Available: read_only."


def test_call_whose_arguments_could_not_be_read_is_told_why_and_not_run() -> None:
    result = run(registry=ALL, made=ToolCall("c1", "exec", {}, broken="Not JSON."))

    assert (result.text, result.is_error) == ("Not JSON.", True)


@pytest.mark.parametrize(
    "error",
    [
        ToolFailed("No.", hint="Try b."),
        ToolDenied("No.", hint="Try b."),
        ToolRetry("No.", hint="Try b."),
        DeadlineExceeded("No.", hint="Try b."),
    ],
)
def test_failure_is_told_to_the_model_with_its_hint(error: Exception) -> None:
    def fail(ctx):
        raise error

    assert run(fail) == ToolMessage("c1", "act", "No. Try b.", is_error=True)


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError(), OSError(5, "I/O error")])
def test_bug_of_a_tool_is_a_result_and_stays_in_the_log(error: Exception, caplog) -> None:
    def fail(ctx):
        raise error

    result = run(fail)

    assert (result.text, result.is_error) == (f"act failed inside fermix: {type(error).__name__}.", True)
    assert "Tool act failed" in caplog.text


def test_stop_is_not_a_result() -> None:
    def fail(ctx):
        raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        run(fail)


def test_tool_of_a_stopped_turn_does_not_begin() -> None:
    cancel, ran = Cancel(), []
    cancel.set("by /stop")

    with pytest.raises(Cancelled):
        run(lambda ctx: ran.append(1) or "", cancel=cancel)
    assert ran == []


def test_known_secret_is_not_in_a_result_nor_in_half_at_the_cut() -> None:
    redactor = Redactor()
    redactor.add(Secret("sk-1234567890abcdef"))
    text = "x" * 495 + "sk-1234567890abcdef" + "y" * 1000

    result = run(lambda ctx: text, redact=redactor.redact, limit=1000)

    assert "***" in result.text and "sk-" not in result.text


def test_secret_in_an_error_is_redacted_too() -> None:
    redactor = Redactor()
    redactor.add(Secret("sk-1234567890abcdef"))

    def fail(ctx):
        raise ToolFailed("Refused: sk-1234567890abcdef.")

    assert run(fail, redact=redactor.redact).text == "Refused: ***."


def test_long_result_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = "head " + "ü" * 50_000 + " tail"

    result = run(lambda ctx: text, limit=1000).text

    assert result.startswith("head ü") and result.endswith("ü tail")
    assert len(result.encode()) < 1100
    assert "of 100010 bytes left out" in result


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_result_within_the_limit_is_whole(size: int) -> None:
    assert cut("x" * size, 1000) == "x" * size


def test_result_with_bytes_that_are_no_text_can_be_stored() -> None:
    assert run(lambda ctx: "name \udcff").text == "name ?"


def test_whole_of_a_long_result_is_kept_and_the_model_is_told_where() -> None:
    def long(ctx: ToolContext) -> str:
        """Long."""
        return "é" * 5_000

    kept: list[tuple[str, str, str]] = []

    def keep(made: ToolCall, turn: TurnFacts, text: str) -> str:
        kept.append((made.name, turn.id, text))
        return "R1"

    registry = Registry([tool(policy=Policy.READ_ONLY)(long)])
    context = tool_context(turn_facts(Path("/")))
    arguments = {"registry": registry, "redact": str, "keep": keep}

    cut_one = invoke(call("long"), context, result_limit_bytes=2_000, **arguments)
    whole_one = invoke(call("long"), context, result_limit_bytes=10_000, **arguments)

    assert kept == [("long", "turn-1", "é" * 5_000)]
    assert cut_one.result_id == "R1" and 'tool_result_recall reads them, id "R1"' in cut_one.text
    assert whole_one.result_id == "" and whole_one.text == "é" * 5_000
