"""A model's summary counts only as far as it can be checked."""

from __future__ import annotations

import pytest

from fermix.agent.context.pins import Pins, pins_of, with_boxes
from fermix.agent.context.summarising import Refused, checked, transcript
from fermix.conversations.summaries import HEAD, Summary
from fermix.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

COVERED = [
    UserMessage("Build the site in /srv/site, port 8080. Please.\n- [ ] write the imprint\n- [ ] buy milk"),
    AssistantMessage("", (ToolCall("c1", "shell", {"script": "make -C /srv/site"}),)),
    ToolMessage("c1", "shell", "ok " * 400),
    AssistantMessage("Built."),
]
GOOD = """Goal: a site in /srv/site
Done: it was built
Facts: port 8080
Open:
- tell the owner"""


def check(text: str, pins: Pins | None = None):
    pins = pins or pins_of(COVERED, None, space=8_000)
    return checked(text, pins, COVERED, size_bytes=1_000, replaced_bytes=2_000)


def test_good_summary_keeps_the_first_request_and_open_items_verbatim() -> None:
    summary = check(GOOD)

    assert isinstance(summary, Summary)
    assert summary.first_request == COVERED[0].text
    assert summary.open_items == ("write the imprint", "buy milk", "tell the owner")
    assert "port 8080" in summary.text and "tell the owner" not in summary.text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "was empty"),
        (" \n", "was empty"),
        ("word " * 400, "was no shorter"),
        ("Goal: x\nDone: write the imprint, and all else\nOpen:\n- none", "called done what is still open"),
        ("Goal: x\nFacts: see https://example.org/invented", "named what nobody had said"),
        ("Goal: x\nFacts: it is in /etc/other/place on port 9443", "named what nobody had said"),
    ],
)
def test_summary_that_cannot_be_right_is_refused(text, why) -> None:
    outcome = check(text)

    assert isinstance(outcome, Refused)
    assert outcome.why.startswith(why)


def test_open_items_of_an_earlier_summary_stay_whatever_the_model_leaves_out() -> None:
    before = Summary(first_request="first words", text="", open_items=("call Ann",), plan=("- [ ] one",))
    pins = pins_of([UserMessage("go on")], before, space=8_000)

    summary = check("Goal: x\nOpen:\n- none", pins)

    assert isinstance(summary, Summary)
    assert (summary.first_request, summary.open_items) == ("first words", ("call Ann",))
    assert summary.plan == ("- [ ] one",)


def test_person_ticks_an_item_off() -> None:
    items = with_boxes([], "todo:\n- [ ] one\n- [ ] two")

    assert items == ["one", "two"]
    assert with_boxes(items, "- [x] one") == ["two"]


def test_latest_plan_is_kept_with_its_states() -> None:
    plan = ToolCall("c9", "plan", {"steps": ["look", "write"], "done": 1})
    messages = [UserMessage("go"), AssistantMessage("", (plan,)), ToolMessage("c9", "plan", "ok")]

    assert pins_of(messages, None, space=8_000).plan == ("- [x] look", "- [ ] write")


def test_transcript_is_as_short_as_it_must_be_and_names_who_spoke() -> None:
    text = transcript(COVERED, 1_200)

    assert len(text) < 1_400
    assert "[person] Build the site" in text and "[shell said] ok" in text


def test_what_a_model_is_shown_of_a_summary_begins_with_a_person_and_ends_with_the_model() -> None:
    shown = Summary(first_request="do it", text="done a lot", open_items=("more",), messages=7).shown()

    assert [type(message) for message in shown] == [UserMessage, AssistantMessage]
    assert shown[0].text.startswith(HEAD)
    assert "First request:\ndo it" in shown[0].text and "- more" in shown[0].text
