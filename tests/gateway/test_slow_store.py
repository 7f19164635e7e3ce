"""Writes that are given up and committed all the same: nothing is lost, done or told twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from gevent.event import Event

from fermix.db import Connection
from fermix.db.settings import DatabaseSettings
from fermix.errors import StoreError
from fermix.messages import AssistantMessage, ToolMessage
from fermix.tasks import Task, TaskGroup, sleep
from fermix.trust import OPERATOR_ATTENDED
from tests.fakes import call, inbound
from tests.gateway.office import Office, until
from tests.gateway.test_outbox import states

PATIENT = DatabaseSettings(batch_time_ms=10_000)
"""What waits together is committed together, however slow the machine."""
SLOW = DatabaseSettings(write_timeout_s=0.4, batch_time_ms=10_000)


class Stall:
    """Keeps the writer's thread busy until it is let go."""

    def __init__(self, office: Office, tasks: TaskGroup) -> None:
        self._reading, self._writing = os.pipe()
        self._is_let_go = False
        self.is_at_work = False
        self.task = tasks.start(lambda: office.db.write(self._work))
        sleep(0)  # its work is in the writer's line now

    def _work(self, connection: Connection) -> None:
        self.is_at_work = True
        os.read(self._reading, 1)

    def let_go(self) -> None:
        if not self._is_let_go:
            self._is_let_go = True
            os.write(self._writing, b".")

    def close(self) -> None:
        self.let_go()
        self.task.join(5)
        os.close(self._reading)
        os.close(self._writing)


@pytest.fixture
def stall(open_office) -> Iterator[Callable[[Office], Stall]]:
    stalls: list[Stall] = []
    tasks = TaskGroup("stalls")

    def begin(office: Office) -> Stall:
        one = Stall(office, tasks)
        if not stalls:  # what comes now is in a batch of its own, with the next one
            until("the thread to be busy", lambda: one.is_at_work)
        stalls.append(one)
        return one

    yield begin
    for one in stalls:
        one.close()


def begin_in_turn(task: Callable[[], object]) -> Task:
    """Run `task` until it waits for its first write."""
    begun = TaskGroup("test").start(task)
    sleep(0)
    sleep(0)
    return begun


def give_up_once(office: Office, stall: Callable[[Office], Stall], first: Stall, caplog) -> None:
    """Have the write that waits behind `first` begun, given up by its waiter, and then committed."""
    second = stall(office)
    first.let_go()
    until("the write to be given up", lambda: "broke" in caplog.text)
    second.let_go()


def test_message_whose_sender_was_told_that_it_failed_is_answered_when_it_is_sent_again(
    open_office, stall
) -> None:
    office = open_office("hi", db=SLOW)
    first = stall(office)
    refused: list[Exception] = []

    def submit() -> None:
        with pytest.raises(StoreError) as raised:
            office.submit()
        refused.append(raised.value)

    task = begin_in_turn(submit)
    second = stall(office)
    first.let_go()
    assert task.join(5) and refused
    second.let_go()
    until("the late commit", lambda: office.rows("SELECT state FROM inbox") == [("received",)])

    assert office.say() == "hi"


def test_message_whose_sender_was_told_that_it_failed_is_not_answered_unless_it_is_sent_again(
    open_office, stall
) -> None:
    office = open_office("never", db=SLOW)
    first = stall(office)
    refused: list[pytest.ExceptionInfo[StoreError]] = []

    def submit() -> None:
        with pytest.raises(StoreError) as raised:
            office.submit()
        refused.append(raised)

    task = begin_in_turn(submit)
    second = stall(office)
    first.let_go()
    # The taking back waits behind it now: it begins 0.4 s after the message and would end 0.4 s later.
    assert not task.join(0.5)
    second.let_go()
    assert task.join(5) and refused

    office = open_office("never")
    office.gateway.recover()
    assert office.rows("SELECT count(*) FROM inbox") == [(0,)]


def test_reply_that_was_stored_late_is_told_once_and_as_it_was(open_office, stall, caplog) -> None:
    stalls: list[Stall] = []
    office = open_office(lambda request: stalls.append(stall(office)) or "the answer", db=SLOW)
    entry = office.submit()
    log = office.watch.find(entry.turn_id)
    until("the end to be written", lambda: any(event.name == "text_delta" for event in log._events))

    give_up_once(office, stall, stalls[0], caplog)

    assert (office.done(entry)["status"], office.done(entry)["text"]) == ("completed", "the answer")
    asked, answer = office.messages()
    assert (asked.text, answer) == ("hello", AssistantMessage("the answer"))
    until("it to lie ready", lambda: states(office) == (["running"], ["sending"]))


def test_step_that_was_stored_late_leaves_no_call_open_and_memory_agrees_with_the_rows(
    open_office, stall, caplog
) -> None:
    stalls: list[Stall] = []
    script = (lambda request: stalls.append(stall(office)) or call("act"), "and now")
    office = open_office(*script, db=SLOW)
    entry = office.submit(id="1")
    until("the step to be written", lambda: stalls)

    give_up_once(office, stall, stalls[0], caplog)

    assert "Something broke" in str(office.done(entry)["text"])
    asked, result = office.messages()[1:3]
    assert asked == AssistantMessage("", tool_calls=(call("act"),))
    assert isinstance(result, ToolMessage) and result.is_error and result.call_id == "c1"
    assert office.ran == []
    stored = office.messages()
    assert office.say("next", id="2") == "and now"
    *before, last = office.model.requests[-1].messages
    assert (before, last.text) == (stored, "next")


@pytest.mark.parametrize("is_begun", [True, False])
def test_turn_whose_beginning_was_given_up_is_answered_once(
    open_office, stall, caplog, is_begun: bool
) -> None:
    office = open_office("never", db=SLOW)
    entry, _ = office.inbox.accept(inbound(), OPERATOR_ATTENDED)
    first = stall(office)
    begin_in_turn(lambda: office.turns.run(entry.id))
    if is_begun:
        give_up_once(office, stall, first, caplog)
    else:
        until("the write to be given up", lambda: "broke" in caplog.text)
        first.let_go()
    assert "Something broke" in str(office.done(entry)["text"])
    until("it to lie ready", lambda: states(office) == (["running"], ["sending"]))

    office = open_office("never")
    office.gateway.recover()
    assert office.outbox.confirm(entry.turn_id, channel="local")

    assert states(office) == (["failed"], ["sent"])
    assert office.model.requests == []


def test_turn_that_was_stopped_while_its_end_was_stored_is_not_handed_back(open_office, stall) -> None:
    stalls: list[Stall] = []
    office = open_office(lambda request: stalls.append(stall(office)) or "the answer", db=PATIENT)
    entry = office.submit()
    log = office.watch.find(entry.turn_id)
    until("the end to be written", lambda: any(event.name == "text_delta" for event in log._events))
    second = stall(office)
    stalls[0].let_go()
    until("the end to be in the batch", lambda: second.is_at_work)

    stopping = begin_in_turn(lambda: office.gateway.queue.stop(5.0))
    second.let_go()
    assert stopping.join(5)
    assert states(office) == (["running"], ["pending"])

    office = open_office("never")
    office.gateway.recover()
    assert office.outbox.confirm(entry.turn_id, channel="local")
    assert states(office) == (["committed"], ["sent"])
    assert office.model.requests == []


def test_watcher_is_told_when_the_database_fails_a_turn_for_good(open_office, stall) -> None:
    stalls: list[Stall] = []
    office = open_office(lambda request: stalls.append(stall(office)) or "the answer", db=SLOW)

    done = office.done(office.submit())

    assert done["status"] == "interrupted" and "when it is started again" in str(done["text"])
    assert done["error"]["code"] == "store"


def test_watcher_of_a_command_is_told_it_too(open_office, stall) -> None:
    office = open_office("never", db=SLOW)
    entry, _ = office.inbox.accept(inbound("/whoami"), OPERATOR_ATTENDED)
    log = office.watch.log_of(entry.turn_id)
    stall(office)

    begin_in_turn(lambda: office.turns.answer(entry, "you"))

    until("its end", lambda: log.is_over)
    assert log.ending["status"] == "interrupted"


def test_turn_that_begins_while_a_cancel_looks_for_it_is_cancelled(open_office) -> None:
    gate, read_end, write_end = Event(), *os.pipe()
    office = open_office(
        lambda request: gate.wait(5) and "first",
        lambda request: request.cancel.wait(5) and "never",
        db=DatabaseSettings(readers=1),
        running_turns=1,
    )
    office.submit(chat="other", id="0")
    waiting = office.submit(id="1")
    until("the first to run", lambda: office.model.requests)
    tasks, found = TaskGroup("test"), []
    tasks.start(lambda: office.db.read(lambda connection: os.read(read_end, 1)))
    sleep(0)  # the only reader is busy now
    tasks.start(lambda: found.append(office.gateway.cancel_turn(waiting.turn_id, "on request")))
    sleep(0)
    gate.set()
    count = "SELECT count(*) FROM turns"
    until(
        "the other to begin",
        lambda: office.db.write(lambda db: db.native.execute(count).fetchone()) == (2,),
    )

    os.write(write_end, b".")
    assert tasks.join(5)

    assert found == [True]
    assert office.done(waiting)["text"] == "Stopped on request."
    os.close(read_end)
    os.close(write_end)
