"""Turns from acceptance to their one end."""

from __future__ import annotations

import sqlite3

import pytest

from fermix.agent.settings import AgentSettings
from fermix.db.settings import DatabaseSettings
from fermix.errors import Cancelled, StoreFull
from fermix.messages import AssistantMessage, ToolMessage, UserMessage
from fermix.providers.port import Failed, FailureKind
from tests.fakes import call
from tests.gateway.office import Office, until


def wait_cancelled(ctx) -> None:
    """A tool that runs until its turn is stopped."""
    ctx.turn.cancel.wait(10)
    raise Cancelled(f"Stopped: {ctx.turn.cancel.reason}.")


def test_message_is_answered_and_the_conversation_kept(open_office) -> None:
    office = open_office(call("act"), "all done")

    assert office.say("please") == "all done"

    asked, *rest = office.messages()
    assert isinstance(asked, UserMessage) and asked.text == "please"
    assert rest == [
        AssistantMessage("", tool_calls=(call("act"),)),
        ToolMessage("c1", "act", "did it"),
        AssistantMessage("all done"),
    ]
    assert office.rows("SELECT state, attempt, input_tokens, output_tokens, error FROM turns") == [
        ("completed", 1, 20, 4, None)
    ]


def test_each_step_is_stored_before_the_next_thing_happens(open_office) -> None:
    office = open_office(call("act"), lambda request: f"{len(stored())}")

    def stored() -> list[object]:
        return office.messages()

    office.on_run = lambda ctx: seen.append(len(stored()))
    seen: list[int] = []

    assert office.say() == "3"  # the words, the reply with its call, the result
    assert seen == [2]


def test_next_turn_sees_the_one_before(open_office) -> None:
    office = open_office("one", "two")
    office.say("first", id="1")
    office.say("second", id="2")

    assert [message.text for message in office.model.requests[1].messages] == ["first", "one", "second"]


def test_history_is_as_long_as_the_setting_says(open_office) -> None:
    office = open_office("ok", agent=AgentSettings(history_messages=4))
    for number in range(12):
        office.say(f"say {number}", id=str(number))

    assert len(office.model.requests[-1].messages) <= 6


def test_result_is_as_long_as_the_setting_says(open_office) -> None:
    office = open_office(
        call("act", word="x" * 5000), "ok", agent=AgentSettings(tool_result_limit_bytes=1024)
    )
    office.say()

    assert len(office.model.requests[1].messages[-1].text.encode()) < 1200


def test_failed_turn_tells_why_and_the_conversation_goes_on(open_office, caplog) -> None:
    office = open_office(Failed(FailureKind.AUTH, "The key is wrong.", retryable=False), "better")

    done = office.done(office.submit(id="1"))

    assert (done["status"], done["text"]) == ("failed", "The key is wrong.")
    assert done["error"] == {"code": "auth", "message": "The key is wrong.", "hint": None}
    assert "Ended as failed: The key is wrong." in caplog.text
    assert office.say(id="2") == "better"


def test_words_of_the_model_do_not_get_into_the_log_when_its_turn_is_cut_short(open_office, caplog) -> None:
    office = open_office(call("act", word="secret"), agent=AgentSettings(steps_per_turn=1))

    assert "`act` secret: done" in office.say()

    assert "Ended as failed: steps_used_up" in caplog.text
    assert "secret" not in caplog.text


def test_empty_answer_is_stored_as_the_words_the_person_was_told(open_office) -> None:
    office = open_office("  ", "fine")

    said = office.say(id="1")
    office.say(id="2")

    assert "gave no answer" in said
    assert [message.text for message in office.model.requests[1].messages][1] == said


def test_fault_inside_ends_the_turn_with_words_and_loses_nothing_that_waits(open_office, caplog) -> None:
    def break_down(request):
        raise ZeroDivisionError

    office = open_office(break_down, "fine")
    first, second = office.submit(id="1"), office.submit(id="2")

    assert "Something broke inside fermix" in office.done(first)["text"]
    assert office.done(second)["text"] == "fine"
    assert "ZeroDivisionError" in caplog.text


def test_stop_ends_the_running_tool_and_closes_its_call(open_office) -> None:
    office = open_office(call("act"), "go on")
    office.on_run = wait_cancelled
    entry = office.submit("work", id="1")
    until("the tool to run", lambda: office.ran)

    assert office.say("/stop", id="2") == "Stopped 1 running turn."

    assert (office.done(entry)["status"], office.done(entry)["text"]) == ("cancelled", "Stopped by /stop.")
    result, words = office.messages()[-2:]
    assert isinstance(result, ToolMessage) and result.is_error and "unknown" in result.text
    assert words == AssistantMessage("…")
    assert office.say("and now", id="3") == "go on"


def test_waiting_turn_can_be_cancelled_and_never_begins(open_office) -> None:
    office = open_office(call("act"), "never")
    office.on_run = wait_cancelled
    running = office.submit(id="1")
    waiting = office.submit(id="2")
    until("the first to run", lambda: office.ran)

    assert office.gateway.cancel_turn(waiting.turn_id, "on request")
    assert not office.gateway.cancel_turn(waiting.turn_id, "on request")
    assert not office.gateway.cancel_turn("unknown", "on request")

    done = office.done(waiting)
    assert (done["status"], done["text"]) == ("cancelled", "Stopped on request before it began.")
    assert office.gateway.cancel_turn(running.turn_id, "on request")
    assert office.done(running)["status"] == "cancelled"
    assert len(office.model.requests) == 1


def test_turn_ends_at_its_time_limit(open_office) -> None:
    office = open_office(lambda request: str(request.deadline.remaining_s() <= 7), turn_timeout_s=7)

    assert office.say() == "True"


def test_full_disk_makes_a_running_turn_wait_and_it_completes_when_there_is_room(open_office) -> None:
    office = open_office(call("act", word="x" * 100_000), "all done")
    office.on_run = lambda ctx: office.change(f"PRAGMA max_page_count = {pages(office)}")
    entry = office.submit()
    log = office.watch.find(entry.turn_id)
    until("the notice", lambda: any("waits for it" in str(event.data) for event in log._events))

    assert not log.is_over
    office.change("PRAGMA max_page_count = 1073741823")

    assert office.done(entry)["text"] == "all done"
    assert len(office.ran) == 1
    assert len(office.messages()) == 4


def test_turn_waits_while_another_process_holds_the_database(open_office, tmp_path) -> None:
    other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    office = open_office(call("act"), "all done", db=DatabaseSettings(busy_timeout_ms=10))
    office.on_run = lambda ctx: other.execute("BEGIN IMMEDIATE")
    entry = office.submit()
    log = office.watch.find(entry.turn_id)
    until("the notice", lambda: any("held by another process" in str(event.data) for event in log._events))

    other.close()

    assert office.done(entry)["text"] == "all done"
    assert len(office.messages()) == 4


def test_full_disk_refuses_a_new_message_and_nothing_of_it_is_kept(open_office) -> None:
    office = open_office()
    office.change(f"PRAGMA max_page_count = {pages(office)}")

    with pytest.raises(StoreFull):
        office.submit("x" * 200_000)
    assert office.rows("SELECT count(*) FROM inbox") == [(0,)]
    office.change("PRAGMA max_page_count = 1073741823")
    assert office.say("x" * 200_000) == "hi"


def test_events_of_a_turn_are_numbered_without_a_gap_and_end_with_done(open_office) -> None:
    office = open_office(call("act"), "done")

    events = office.events(office.submit("act, please"))

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.name for event in events] == [
        "phase_change",
        "tool_call_start",
        "phase_change",
        "tool_call_complete",
        "tool_result",
        "phase_change",
        "text_delta",
        "done",
    ]


def pages(office: Office) -> int:
    return int(office.rows("PRAGMA page_count")[0][0])
