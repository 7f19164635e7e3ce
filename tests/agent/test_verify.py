"""The final words against the record of the turn."""

from __future__ import annotations

import pytest

from fermix.agent.outcome import Outcome
from fermix.agent.plan import Plan
from fermix.agent.verify import correction
from fermix.messages import ToolMessage
from tests.fakes import call


def outcome(name: str, text: str = "ok", *, failed: bool = False, acts: bool = True) -> Outcome:
    return Outcome(call(name, path="a.txt"), ToolMessage("c1", name, text, failed), acts=acts)


FAILED = outcome("file_write", "The disk is full.", failed=True)


@pytest.mark.parametrize(
    ("text", "outcomes", "plan", "told"),
    [
        ("I saved it to a.txt.", [FAILED], None, "The disk is full."),
        ("Here you are.", [FAILED], None, "The disk is full."),
        ("I have created `notes.md` for you.", [], None, "nothing was run or changed"),
        ("All tests passed.", [outcome("shell", "2 failed\n[exit code 1, 0.1 s]")], None, "exit code 1"),
        ("Everything is done.", [], Plan(("a", "b"), 1), "still open: b"),
    ],
)
def test_claim_that_the_record_contradicts_is_corrected(text, outcomes, plan, told) -> None:
    said = correction(text, outcomes, plan, has_acted=bool(outcomes))

    assert said is not None and told in said


@pytest.mark.parametrize(
    ("text", "outcomes", "plan"),
    [
        ("The file could not be written: the disk is full.", [FAILED], None),
        ("Das hat leider nicht geklappt.", [FAILED], None),
        ("I saved it to a.txt.", [FAILED, outcome("file_write")], None),
        ("It says hello.", [outcome("file_read", "no such file", failed=True, acts=False)], None),
        ("I wrote a poem for you.", [], None),
        ("There is nothing like it in the log.", [outcome("shell", "[exit code 1, 0.1 s]")], None),
        ("Step a is done, b is still to do.", [], Plan(("a", "b"), 1)),
        ("Everything is done.", [], Plan(("a", "b"), 2)),
    ],
)
def test_words_that_agree_with_the_record_stay_as_they_are(text, outcomes, plan) -> None:
    assert correction(text, outcomes, plan, has_acted=bool(outcomes)) is None


def test_deed_of_an_earlier_turn_may_be_told() -> None:
    assert correction("I created `notes.md` before.", [], None, has_acted=True) is None
