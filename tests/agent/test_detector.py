"""Turns that go in circles."""

from __future__ import annotations

from collections.abc import Callable

from fermix.agent.detector import ALL_FAILED, SAME_CALLS, SAME_RESULTS, Detector
from fermix.messages import ToolMessage
from tests.fakes import call


def steps_until_it_ends(step: Callable[[int], tuple[str, str, bool]], most: int = 60) -> int | None:
    detector = Detector()
    for number in range(1, most + 1):
        script, text, failed = step(number)
        result = ToolMessage("c", "shell", text, failed)
        detector.heard(call("shell", script=script), result)
        if detector.step([result]) is not None:
            return number
    return None


def test_same_call_with_the_same_result_ends_the_turn() -> None:
    assert steps_until_it_ends(lambda number: ("date", "same", False)) == SAME_RESULTS


def test_same_call_whose_result_only_carries_a_clock_ends_the_turn_too() -> None:
    assert steps_until_it_ends(lambda number: ("date", f"at {number}", False)) == SAME_CALLS


def test_two_calls_in_turns_are_a_circle() -> None:
    assert steps_until_it_ends(lambda number: (f"do {number % 2}", "same", False)) == SAME_RESULTS + 1


def test_malformed_call_again_and_again_ends_the_turn() -> None:
    assert steps_until_it_ends(lambda number: ("", "Bad JSON.", True)) == 3


def test_outside_service_that_refuses_every_time_ends_the_turn() -> None:
    assert steps_until_it_ends(lambda number: (f"get {number}", "HTTP 429", True)) == ALL_FAILED


def test_work_that_moves_on_is_not_a_circle() -> None:
    def step(number: int) -> tuple[str, str, bool]:
        return ("run the tests", "2 failed", False) if number % 2 else (f"edit {number}", "ok", False)

    assert steps_until_it_ends(step) is None


def test_model_is_told_that_it_repeats_itself() -> None:
    detector = Detector()
    result = ToolMessage("c", "look", "nothing")

    hints = [detector.heard(call("look", at="x"), result) for _ in range(3)]

    assert hints[:2] == [None, None]
    assert "3 times" in str(hints[2])
