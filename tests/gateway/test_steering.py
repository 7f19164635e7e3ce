"""Words that are folded into the answer on its way, and those that get their own."""

from __future__ import annotations

import time

import pytest

from fermix.gateway.steering import TAKEN_UP, WAITS_FOR_STEP, words_of
from fermix.messages import UserMessage
from fermix.tasks import sleep
from fermix.trust import GUEST_ATTENDED
from tests.fakes import call
from tests.gateway.office import Office, until


def said(office: Office, number: int) -> list[str]:
    """What persons said, as the model was shown it with a question."""
    messages = office.model.requests[number].messages
    return [message.text for message in messages if isinstance(message, UserMessage)]


def test_steer_hands_its_words_to_the_running_turn_at_the_next_step(open_office) -> None:
    office = open_office(call("act"), "both done")
    office.on_run = lambda ctx: entries.append(office.submit("/steer and the lamp", id="2"))
    entries: list = []

    text = office.say("the door", id="1")

    assert text == "both done"
    assert said(office, 1) == ["the door", "and the lamp"]
    assert office.done(entries[0])["text"] == TAKEN_UP
    kept = [message.text for message in office.messages() if isinstance(message, UserMessage)]
    assert kept == ["the door", "and the lamp"]
    assert len(office.model.requests) == 2


@pytest.mark.parametrize(
    ("steering", "text", "is_told"),
    [("queue", "/steer the lamp", True), ("steer", "the lamp", True), ("queue", "the lamp", False)],
)
def test_who_steers_is_told_at_once_that_it_waits_for_the_next_step(
    open_office, steering: str, text: str, is_told: bool
) -> None:
    office = open_office(call("act"), "one", "two", steering=steering)
    seen: list = []

    def during(ctx: object) -> None:
        log = office.watch.find(office.submit(text, id="2").turn_id)
        assert log is not None
        seen.append(next(log.watch(0, 0.01)))

    office.on_run = during
    office.say("the door", id="1")

    assert [event and event.data["text"] for event in seen] == [WAITS_FOR_STEP if is_told else None]


def test_steer_that_comes_too_late_is_a_message_of_its_own(open_office) -> None:
    office = open_office("done", "the lamp too")

    office.say("the door", id="1")

    assert office.say("/steer the lamp", id="2") == "the lamp too"
    assert said(office, 1) == ["the door", "the lamp"]


def test_message_meanwhile_waits_unless_the_setting_folds_it(open_office) -> None:
    for steering, expected in (("queue", ["first"]), ("steer", ["first", "second"])):
        office = open_office(call("act"), "one", "two", steering=steering)
        before = len(office.model.requests)
        key = f"in {steering}"
        office.on_run = lambda ctx, key=key, office=office: office.submit("second", id=f"{key} 2", chat=key)

        office.say("first", id=f"{key} 1", chat=key)

        assert said(office, before + 1) == expected


def test_words_of_somebody_trusted_less_are_not_folded(open_office) -> None:
    office = open_office(call("act"), "one", "two")
    office.on_run = lambda ctx: office.submit("/steer do evil", id="2", at_most=GUEST_ATTENDED)

    office.say("first", id="1")

    assert said(office, 1) == ["first"]
    until("the other turn", lambda: len(office.model.requests) == 3)


def test_steer_needs_words(open_office) -> None:
    assert "/steer TEXT" in open_office("hi").say("/steer")
    assert (words_of("/steer"), words_of("/steer a b"), words_of("/steering x")) == (None, "a b", None)


def test_stop_ends_a_tool_that_does_not_listen_within_a_second(open_office) -> None:
    office = open_office(call("act"), "never")
    running: list[float] = []

    def stubborn(ctx: object) -> None:
        running.append(1)
        sleep(30)

    office.on_run = stubborn
    entry = office.submit("work", id="1")
    until("the tool", lambda: running)
    began = time.monotonic()

    office.say("/stop", id="2")

    assert office.done(entry)["status"] == "cancelled"
    assert time.monotonic() - began < 1


def test_decisions_of_the_phases_are_kept_with_the_turn(open_office) -> None:
    office = open_office(call("act"), "I did it")

    entry = office.submit("thanks", id="1")
    office.done(entry)

    (row,) = office.rows(f"SELECT decisions FROM turns WHERE id = '{entry.turn_id}'")
    assert "classify: small talk" in row[0] and "act: runs act" in row[0]
