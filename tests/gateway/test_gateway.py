"""The way in: what is taken, what is refused, and that what was taken is on its way."""

from __future__ import annotations

import msgspec
import pytest
from gevent.event import Event

from fermix.errors import Draining, QueueFull, UsageError
from fermix.gateway.authorizer import ChannelAccess
from fermix.gateway.gateway import Denied
from fermix.messages import Attachment, UserMessage
from fermix.tasks import TaskGroup, sleep
from fermix.trust import GUEST_ATTENDED, Standing, Trust
from tests.fakes import FakeChannel, call, inbound
from tests.gateway.office import Office, until
from tests.gateway.test_turns import wait_cancelled


def count(office: Office) -> int:
    return int(office.rows("SELECT count(*) FROM inbox")[0][0])


@pytest.mark.parametrize("sender", ["stranger", "", "x\n\x1b[31m" * 100])
def test_denied_sender_leaves_no_row_and_gets_no_answer(open_office, caplog, sender: str) -> None:
    caplog.set_level("INFO")
    office = open_office(channels=(FakeChannel(),), access={"fake": ChannelAccess("owner")})

    assert office.send(inbound(channel="fake", sender=sender)) == Denied()

    assert count(office) == 0 and office.model.requests == []
    assert office.gateway.denied == 1
    assert "\x1b" not in caplog.text and "Denied sender" in caplog.text


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_empty_message_is_refused(open_office, text: str) -> None:
    office = open_office()

    with pytest.raises(UsageError, match="empty"):
        office.submit(text)
    assert count(office) == 0


def test_message_of_files_alone_is_taken(open_office) -> None:
    office = open_office()
    message = inbound("")
    file = Attachment("/w/a.png", "a.png", "image/png", 5)

    entry = office.send(msgspec.structs.replace(message, attachments=(file,)))

    assert office.done(entry)["text"] == "hi"
    assert "[attached: a.png (image/png, 5 bytes) at /w/a.png]" in office.messages()[0].text


@pytest.mark.parametrize(
    ("text", "is_taken"), [("x" * 2000, True), ("x" * 2001, False), ("ü" * 1001, False)]
)
def test_text_may_be_as_long_as_the_setting_says(open_office, text: str, is_taken: bool) -> None:
    office = open_office(text_limit_bytes=2000)

    if is_taken:
        assert office.say(text) == "hi"
        return
    with pytest.raises(UsageError, match=f"{len(text.encode())} bytes; at most 2000"):
        office.submit(text)
    assert count(office) == 0


def test_same_platform_id_is_the_same_message(open_office) -> None:
    office = open_office()

    first, again = office.submit(), office.submit()
    office.done(first)

    assert first.turn_id == again.turn_id == office.submit().turn_id
    assert len(office.model.requests) == 1 and count(office) == 1


def test_conversation_takes_as_many_waiting_messages_as_the_setting_says(open_office) -> None:
    office = open_office(call("act"), "ok", waiting_messages=2)
    office.on_run = wait_cancelled
    office.submit(id="0")
    until("it to run", lambda: office.ran)
    waiting = [office.submit(id=str(number)) for number in (1, 2)]

    with pytest.raises(QueueFull):
        office.submit(id="3")
    assert count(office) == 3
    # who was taken before is told so, and a command is always heard
    assert office.submit(id="2").turn_id == waiting[1].turn_id
    assert office.say("/stop", id="4") == "Stopped 1 running turn."
    assert [office.done(entry)["text"] for entry in waiting] == ["ok", "ok"]


def test_waiting_message_runs_in_its_own_conversation_whoever_speaks_meanwhile(open_office) -> None:
    gate = Event()
    office = open_office(lambda request: gate.wait(10) and "first", "second")
    office.submit("one", id="1", chat="a")
    waiting = office.submit("two", id="2", chat="a")
    other = office.submit("three", id="3", chat="b")

    gate.set()
    office.done(waiting)
    office.done(other)

    said = [[each.text for each in office.messages(chat) if isinstance(each, UserMessage)] for chat in "ab"]
    assert said == [["one", "two"], ["three"]]


@pytest.mark.parametrize(("limit", "together"), [(1, 1), (3, 3)])
def test_as_many_turns_run_at_once_as_the_setting_says(open_office, limit: int, together: int) -> None:
    office = open_office(
        lambda request: most.append(office.gateway.queue.running) or sleep(0.01) or "ok",
        running_turns=limit,
    )
    most: list[int] = []

    entries = [office.submit(chat=str(number), id=str(number)) for number in range(6)]
    for entry in entries:
        office.done(entry)

    assert max(most) == together


def test_draining_gateway_takes_nothing_new_but_knows_what_it_took(open_office) -> None:
    office = open_office()
    entry = office.submit(id="1")
    office.done(entry)
    office.gateway.drain(1.0)

    with pytest.raises(Draining):
        office.submit(id="2")
    assert office.submit(id="1").turn_id == entry.turn_id
    assert count(office) == 1


def test_message_is_answered_even_if_its_sender_is_gone_before_it_is_stored(open_office) -> None:
    office = open_office()
    group = TaskGroup("sender")
    sender = group.start(lambda: office.submit("quick", id="1"))
    sleep(0)
    sender.stop(1.0)

    until("it to be stored", lambda: count(office) == 1)
    entry = office.submit("quick", id="1")

    assert office.done(entry)["text"] == "hi"


def test_cancelling_a_waiting_turn_holds_even_if_whoever_asked_is_gone(open_office) -> None:
    office = open_office(call("act"), "never")
    office.on_run = wait_cancelled
    office.submit(id="1")
    waiting = office.submit(id="2")
    until("the first to run", lambda: office.ran)
    asker = TaskGroup("asker").start(lambda: office.gateway.cancel_turn(waiting.turn_id, "on request"))
    until("it to be withdrawn", lambda: office.gateway.queue.waiting == 0)
    asker.stop(1.0)

    assert office.done(waiting)["status"] == "cancelled"


def test_standing_is_narrowed_and_stays_with_the_message(open_office) -> None:
    office = open_office()

    entry = office.submit(at_most=Standing(Trust.GUEST, attended=False))

    assert entry.standing == Standing(Trust.GUEST, attended=False)
    stored = office.inbox.of_turn(entry.turn_id)
    assert stored is not None and stored.standing == entry.standing


def test_command_is_answered_without_a_model_and_not_as_part_of_the_conversation(open_office) -> None:
    office = open_office(channels=(FakeChannel(),), access={"fake": ChannelAccess(None, ("guest",))})

    entry = office.submit("/whoami", channel="fake", sender="guest")

    assert "You are the guest (attended) on channel fake" in office.done(entry)["text"]
    assert entry.standing == GUEST_ATTENDED
    assert office.model.requests == [] and office.messages(channel="fake") == []
