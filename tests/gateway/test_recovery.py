"""What an earlier life left, in every state it can be left in."""

from __future__ import annotations

import time

import pytest

from fermix.agent.settings import AgentSettings
from fermix.channels.port import SendFailed
from fermix.errors import UsageError
from fermix.gateway.authorizer import ChannelAccess
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.watch import LIFE
from fermix.messages import AssistantMessage, ToolMessage
from fermix.tasks import sleep
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Standing, Trust
from tests.fakes import FakeChannel, FakeClock, call, inbound
from tests.gateway.office import Office, until
from tests.gateway.test_turns import pages, wait_cancelled


def leave_waiting(office: Office, *texts: str) -> list[InboxEntry]:
    """Messages that were accepted and not begun."""
    office.gateway.queue.close()
    return [office.submit(text, id=text) for text in texts]


def leave_running(office: Office) -> InboxEntry:
    """A message whose turn was in the middle of a tool when everything ended."""
    office.on_run = wait_cancelled
    entry = office.submit("work")
    until("the tool to run", lambda: office.ran)
    return entry


def inbox_state(office: Office) -> list[tuple[object, ...]]:
    return office.rows("SELECT state, attempts FROM inbox ORDER BY rowid")


def test_accepted_messages_are_answered_in_the_order_they_came(open_office) -> None:
    texts = [f"m{number}" for number in range(20)]
    entries = leave_waiting(open_office(), *texts)

    office = open_office(lambda request: request.messages[-1].text)
    office.gateway.recover()
    for entry in entries:
        office.done(entry)

    said = [message.text for message in office.messages() if isinstance(message, AssistantMessage)]
    assert said == texts


def test_interrupted_turn_goes_on_after_its_last_step_and_runs_no_call_again(open_office) -> None:
    entry = leave_running(open_office(call("act"), "never"))

    office = open_office("I was interrupted.")
    office.gateway.recover()
    events = office.events(entry)

    assert office.ran == []
    asked, result = office.model.requests[0].messages[-2:]
    assert asked.tool_calls == (call("act"),)
    assert isinstance(result, ToolMessage) and result.is_error and "was not run again" in result.text
    assert events[0].seq == 2 * LIFE and events[0].name == "restarted"
    assert [event.name for event in events[1:4]] == ["tool_call_start", "tool_call_complete", "tool_result"]
    assert office.messages()[0].text == "work" and office.messages()[-1].text == "I was interrupted."
    assert office.rows("SELECT state, attempt FROM turns") == [("completed", 2)]


def test_second_life_of_a_turn_gets_no_new_steps(open_office) -> None:
    entry = leave_running(open_office(call("act"), "never", agent=AgentSettings(steps_per_turn=1)))

    office = open_office("never asked", agent=AgentSettings(steps_per_turn=1))
    office.gateway.recover()
    events = office.events(entry)

    assert office.model.requests == []
    assert "used all of its 1 model calls" in events[-1].data["text"]


def test_resumed_turn_answers_every_call_of_a_reply_that_was_open(open_office) -> None:
    office = open_office((call("act", id="a", word="first"), call("act", id="b", word="second")), "never")
    office.on_run = lambda ctx: wait_cancelled(ctx) if len(office.ran) == 2 else None
    entry = office.submit("work")
    until("the second tool to run", lambda: len(office.ran) == 2)

    office = open_office("ok")
    office.gateway.recover()
    office.done(entry)

    results = [message for message in office.messages() if isinstance(message, ToolMessage)]
    assert [(one.call_id, one.is_error) for one in results] == [("a", False), ("b", True)]


def test_message_that_took_the_daemon_down_twice_is_closed_with_honest_words(open_office) -> None:
    entry = leave_running(open_office(call("act"), "never"))
    office = open_office(call("act"), "never")
    office.on_run = wait_cancelled
    office.gateway.recover()
    until("the second attempt", lambda: office.ran)
    assert inbox_state(office) == [("running", 2)]

    office = open_office("never")
    office.gateway.recover()
    events = office.events(entry)

    done = events[-1].data
    assert done["status"] == "interrupted" and "stopped twice" in done["text"]
    assert (events[0].name, events[0].seq) == ("restarted", 3 * LIFE)
    assert office.model.requests == []
    results = [message for message in office.messages() if isinstance(message, ToolMessage)]
    assert len(results) == 2
    assert office.outbox.confirm(entry.turn_id, channel="local")
    assert inbox_state(office)[0][0] == "committed"


def test_full_disk_keeps_the_daemon_from_closing_a_message_but_not_from_starting(open_office) -> None:
    office = open_office()
    office.gateway.queue.close()
    entry = office.submit("x" * 100_000)
    office.change("UPDATE inbox SET state = 'running', attempts = 2")

    office = open_office("never")
    office.change(f"PRAGMA max_page_count = {pages(office)}")
    office.gateway.recover()
    log = office.watch.find(entry.turn_id)
    until("it to be tried", lambda: log.is_over or office.gateway.queue.running)
    office.change("PRAGMA max_page_count = 1073741823")

    assert office.done(entry)["status"] == "interrupted"


def test_command_that_took_the_daemon_down_twice_is_closed_too(open_office) -> None:
    office = open_office()
    entry, _ = office.inbox.accept(inbound("/whoami"), GUEST_ATTENDED)
    office.change("UPDATE inbox SET state = 'running', attempts = 2")

    office = open_office("never")
    office.gateway.recover()

    assert "stopped twice" in str(office.done(entry)["text"])


def test_handed_back_turn_goes_on_and_that_does_not_count_as_an_attempt(open_office) -> None:
    office = open_office(call("act"), "never")
    office.on_run = wait_cancelled
    entry = office.submit("work")
    for life in range(2, 6):
        until("the tool to run", lambda office=office: office.ran)
        office.gateway.drain(0.05)
        assert inbox_state(office) == [("received", 0)]
        office = open_office(call("act") if life < 5 else "done at last")
        office.on_run = wait_cancelled
        office.gateway.recover()

    assert str(office.events(entry)[-1].data["text"]).startswith("done at last")
    assert office.rows("SELECT attempt FROM turns") == [(5,)]


def test_planned_stop_of_a_turn_whose_tool_does_not_let_go_is_no_attempt(open_office) -> None:
    office = open_office(call("act"), "never")
    office.on_run = lambda ctx: sleep(30)
    office.submit("work")
    until("the tool to run", lambda: office.ran)

    began = time.monotonic()
    office.gateway.drain(0.2)
    assert time.monotonic() - began < 1.0
    assert inbox_state(office) == [("running", 1)]
    office.gateway.stop(2.0)

    assert inbox_state(office) == [("received", 0)]


def test_stop_of_a_person_is_not_undone_by_the_daemons_own(open_office) -> None:
    office = open_office(call("act"), "never")
    office.on_run = lambda ctx: (office.turns.cancel(None, "by /stop"), wait_cancelled(ctx))
    entry = office.submit("work")

    assert office.done(entry)["status"] == "cancelled"
    assert office.gateway.queue.drain(1.0)
    assert inbox_state(office) == [("running", 1)]  # until its reader has seen the reply


def test_reply_that_nobody_read_waits_and_the_turn_is_not_run_again(open_office) -> None:
    office = open_office("the answer")
    entry = office.submit()
    office.done(entry)

    office = open_office("never")
    office.gateway.recover()

    assert office.model.requests == []
    log = office.replay.log_of(entry.turn_id, 7)
    assert log.ending["text"] == "the answer" and all(event.seq > 7 for event in log.follow(7))
    assert office.outbox.confirm(entry.turn_id, channel="local")
    assert inbox_state(office) == [("committed", 1)]


def test_delivered_message_is_committed(open_office) -> None:
    office = open_office()
    entry = office.submit()
    office.done(entry)
    office.change("UPDATE inbox SET state = 'delivered'")

    office = open_office("never")
    office.gateway.recover()

    assert inbox_state(office) == [("committed", 1)]
    assert office.watch.find(entry.turn_id) is None


def test_command_that_was_not_answered_is_answered(open_office) -> None:
    office = open_office()
    entry, _ = office.inbox.accept(inbound("/whoami"), GUEST_ATTENDED)

    office = open_office("never")
    office.gateway.recover()

    assert "You are the guest" in str(office.done(entry)["text"])


def test_standing_of_a_message_outlives_the_daemon(open_office) -> None:
    office = open_office()
    office.inbox.accept(inbound(), Standing(Trust.GUEST, attended=False))

    office = open_office()

    assert [entry.standing for entry in office.inbox.unfinished()] == [Standing(Trust.GUEST)]


@pytest.mark.parametrize("state", ["committed", "failed", "dropped"])
def test_finished_message_is_left_alone(open_office, state: str) -> None:
    office = open_office()
    office.done(office.submit())
    office.change("UPDATE inbox SET state = ?", state)

    office = open_office("never")
    office.gateway.recover()

    assert inbox_state(office) == [(state, 1)]


def test_turn_that_waited_in_an_earlier_life_can_be_cancelled_by_a_client_that_saw_it_run(
    open_office,
) -> None:
    office = open_office(call("act"), "never")
    office.on_run = wait_cancelled
    first = office.submit("work", id="1")
    until("the tool to run", lambda: office.ran)
    seen = office.watch.find(first.turn_id)._events[-1].seq
    office.gateway.drain(0.05)

    office = open_office(call("act"), "never", running_turns=1)
    office.on_run = wait_cancelled
    blocker = office.submit("blocks", chat="other", id="0")
    until("the only slot to be taken", lambda: office.ran)
    office.gateway.recover()
    assert office.gateway.cancel_turn(first.turn_id, "on request")

    events = office.events(first, after_seq=seen)
    assert events[-1].name == "done" and events[-1].seq > LIFE
    office.gateway.cancel_turn(blocker.turn_id, "at the end")
    office.done(blocker)


def test_unknown_or_running_turn_cannot_be_replayed(open_office) -> None:
    office = open_office()

    with pytest.raises(UsageError, match="No turn 'x' has ended"):
        office.replay.log_of("x", 0)


def test_reply_of_this_life_is_not_taken_for_one_a_crash_caught(open_office) -> None:
    office = open_office()
    office.inbox.accept(inbound("/whoami", channel="fake", sender="owner", id="command"), OPERATOR_ATTENDED)
    for entry in leave_waiting(office, *(f"m{number}" for number in range(20))):
        office.change("UPDATE inbox SET state = 'delivered' WHERE id = ?", entry.id)
    channel = FakeChannel(size=1000)
    channel.gate.clear()

    office = open_office("never", channels=(channel,), access={"fake": ChannelAccess("owner")})
    office.gateway.recover()
    channel.gate.set()
    until("the answer", lambda: office.rows("SELECT state FROM outbox") == [("sent",)])

    assert len(channel.texts) == 1 and "You are the operator" in channel.texts[0]


def test_reply_for_a_platform_goes_out_however_long_fermix_was_off(open_office) -> None:
    channel, later = FakeChannel(), FakeChannel()
    channel.answers = [SendFailed("down", retry_after_s=60)]
    access = {"fake": ChannelAccess("owner")}
    office = open_office("hi", channels=(channel,), access=access)
    office.submit(channel="fake", sender="owner")
    until("the pause", lambda: channel.tried and office.rows("SELECT state FROM outbox") == [("pending",)])

    month_later = FakeClock(office.clock.ms + 30 * 86_400_000)
    office = open_office("never", channels=(later,), access=access, clock=month_later)
    office.gateway.recover()
    until("it to be sent", lambda: later.texts)

    assert later.texts == ["hi"]
