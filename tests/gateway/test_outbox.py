"""Replies on their way out: in order, once, and never lost without a word."""

from __future__ import annotations

import sqlite3

import pytest

from fermix import events
from fermix.channels.port import SendFailed
from fermix.db.settings import DatabaseSettings
from fermix.gateway.authorizer import ChannelAccess
from fermix.gateway.outbox import DOUBT
from fermix.tasks import sleep
from tests.fakes import FakeChannel, FakeClock
from tests.gateway.office import Office, until

ACCESS = {"fake": ChannelAccess("owner"), "teller": ChannelAccess("owner")}
DAY_MS = 86_400_000


def receive(office: Office, text: str = "hello", **fields: str):
    return office.submit(text, **{"channel": "fake", "sender": "owner", **fields})


def states(office: Office) -> tuple[list[str], list[str]]:
    """Of the inbox and of the outbox."""
    inbox = office.rows("SELECT state FROM inbox ORDER BY rowid")
    outbox = office.rows("SELECT state FROM outbox ORDER BY rowid")
    return [row[0] for row in inbox], [row[0] for row in outbox]


def is_settled(office: Office) -> bool:
    return set(states(office)[0]) <= {"committed", "failed"}


def test_reply_is_sent_in_pieces_in_order_and_then_committed(open_office) -> None:
    channel = FakeChannel()
    office = open_office("one two three four five", channels=(channel,), access=ACCESS)

    receive(office)
    until("it to be committed", lambda: is_settled(office))

    assert channel.texts == ["one two th", "ree four f", "ive"]
    assert [chunk.position for chunk in channel.sent] == [0, 1, 2]
    assert states(office) == (["committed"], ["sent"] * 3)


def test_replies_of_one_chat_keep_their_order_and_chats_do_not_wait_for_each_other(open_office) -> None:
    channel = FakeChannel(size=100)
    channel.answers = [SendFailed("busy", retry_after_s=0.2)]
    office = open_office(lambda request: request.messages[-1].text, channels=(channel,), access=ACCESS)

    first = receive(office, "a1", chat="a", id="1")
    office.done(first)
    for number, (text, chat) in enumerate((("a2", "a"), ("b1", "b"))):
        receive(office, text, chat=chat, id=f"later {number}")
    until("all to be sent", lambda: len(channel.sent) == 3)

    assert channel.texts == ["b1", "a1", "a2"]


def test_piece_the_platform_refused_is_tried_again_after_the_time_it_named(open_office) -> None:
    channel = FakeChannel(size=100)
    channel.answers = [SendFailed("busy", retry_after_s=1.0), SendFailed("busy", retry_after_s=0.05)]
    office = open_office("hi", channels=(channel,), access=ACCESS)

    receive(office)
    # in the pause: a crash now must not make it look as if it might be there
    until("the pause", lambda: channel.tried and states(office)[1] == ["pending"])
    until("it to be committed", lambda: is_settled(office))

    assert (channel.texts, len(channel.tried)) == (["hi"], 3)
    assert office.rows("SELECT attempts FROM outbox") == [(3,)]


def test_deferred_reply_is_delivered_by_the_readers_word(open_office) -> None:
    office = open_office("hi")
    entry = office.submit()
    office.done(entry)
    until("it to be there for the reader", lambda: states(office)[1] == ["sending"])
    assert states(office)[0] == ["running"]

    assert office.outbox.confirm(entry.turn_id, channel="local")

    assert states(office) == (["committed"], ["sent"])
    assert not office.outbox.confirm(entry.turn_id, channel="local")


def test_readers_word_is_committed_when_the_database_fails_right_behind_it(open_office, tmp_path) -> None:
    office = open_office("hi", db=DatabaseSettings(busy_timeout_ms=10))
    entry = office.submit()
    office.done(entry)
    until("it to be there for the reader", lambda: states(office)[1] == ["sending"])
    other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)

    def hold(name: str, fields: dict[str, object]) -> None:
        if name == "inbox.delivered":
            other.execute("BEGIN IMMEDIATE")

    events.set_sink(hold)
    try:
        assert office.outbox.confirm(entry.turn_id, channel="local")
    finally:
        events.set_sink(None)
    assert states(office) == (["delivered"], ["sent"])
    other.close()

    until("it to be committed", lambda: is_settled(office))


def test_word_of_a_local_reader_does_not_settle_another_channels_reply(open_office) -> None:
    channel = FakeChannel(size=100)
    channel.gate.clear()
    office = open_office("hi", channels=(channel,), access=ACCESS)
    entry = receive(office)
    office.done(entry)

    assert not office.outbox.confirm(entry.turn_id, channel="local")
    assert not office.outbox.confirm("no such turn", channel="local")
    channel.gate.set()
    until("it to be sent", lambda: channel.texts == ["hi"])


def test_what_was_still_to_go_is_sent_in_order_by_the_next_life(open_office) -> None:
    channel, later = FakeChannel(), FakeChannel()
    channel.answers = [SendFailed("down", retry_after_s=60)]
    text = "".join(f"piece {number:03d} " for number in range(40))
    office = open_office(text, channels=(channel,), access=ACCESS)
    office.done(receive(office))
    until("the first try", lambda: channel.tried)

    office = open_office(channels=(later,), access=ACCESS)
    office.gateway.recover()
    until("it to be committed", lambda: is_settled(office))

    assert "".join(later.texts) == text


@pytest.mark.parametrize(
    ("can_tell", "state", "sent"), [(False, ["uncertain", "sent"], [DOUBT]), (True, ["sent"], ["hi"])]
)
def test_piece_a_crash_caught_while_sending_is_sent_again_only_if_duplicates_show(
    open_office, can_tell: bool, state: list[str], sent: list[str]
) -> None:
    channel = FakeChannel(can_tell_duplicates=can_tell)
    channel.gate.clear()
    office = open_office("hi", channels=(channel,), access=ACCESS)
    office.done(receive(office))
    until("it to be on its way", lambda: channel.tried)

    later = FakeChannel(can_tell_duplicates=can_tell, size=500)
    office = open_office(channels=(later,), access=ACCESS)
    office.gateway.recover()
    until("it to be committed", lambda: is_settled(office))

    assert states(office) == (["committed"], state)
    assert later.texts == sent
    assert (later.sent[0].id == channel.tried[0].id) is can_tell


def test_word_about_a_doubtful_piece_is_itself_said_once(open_office) -> None:
    channel = FakeChannel(size=500)
    office = open_office("hi", channels=(channel,), access=ACCESS)
    channel.gate.clear()
    office.done(receive(office))
    until("it to be on its way", lambda: channel.tried)

    for _ in range(2):
        silent = FakeChannel(size=500)
        silent.gate.clear()
        office = open_office(channels=(silent,), access=ACCESS)
        office.gateway.recover()
        until(
            "the word to be on its way or settled", lambda office=office: states(office)[1][-1] != "pending"
        )
        last = states(office)

    assert last == (["committed"], ["uncertain", "uncertain"])


def test_sent_piece_is_not_sent_again_when_the_database_fails_afterwards(open_office, tmp_path) -> None:
    channel = FakeChannel(size=100)
    impatient = DatabaseSettings(busy_timeout_ms=10)
    office = open_office("hi", channels=(channel,), access=ACCESS, db=impatient)
    channel.gate.clear()
    office.done(receive(office))
    until("it to be on its way", lambda: channel.tried)

    other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    channel.gate.set()
    sleep(0.1)
    assert channel.texts == ["hi"] and states(office)[1] == ["sending"]
    other.close()
    until("it to be committed", lambda: is_settled(office))

    assert channel.texts == ["hi"]


@pytest.mark.parametrize("can_tell", [False, True])
def test_channel_that_breaks_does_not_hold_up_what_follows(open_office, caplog, can_tell: bool) -> None:
    channel = FakeChannel(size=100, can_tell_duplicates=can_tell)
    channel.answers = [KeyError("bug")]
    office = open_office("hi", channels=(channel,), access=ACCESS)

    for number in range(2):
        office.done(receive(office, id=str(number)))
    until("all to be settled", lambda: is_settled(office))

    assert channel.texts == (["hi", "hi"] if can_tell else ["hi"])
    assert states(office)[1] == [("sent" if can_tell else "uncertain"), "sent"]
    assert "broke on chunk" in caplog.text


def test_reply_to_a_channel_that_is_off_waits_until_it_is_on(open_office) -> None:
    channel = FakeChannel(size=100)
    channel.answers = [SendFailed("down", retry_after_s=60)]
    office = open_office("hi", channels=(channel,), access=ACCESS)
    office.done(receive(office))
    until("it to be refused", lambda: channel.tried and states(office)[1] == ["pending"])

    office = open_office()
    office.gateway.recover()
    assert states(office)[1] == ["pending"]

    later = FakeChannel(size=100)
    office = open_office(channels=(later,), access=ACCESS)
    office.gateway.recover()
    until("it to be sent", lambda: later.texts == ["hi"])


def test_message_of_a_channel_that_was_taken_away_does_not_keep_the_daemon_from_starting(
    open_office,
) -> None:
    office = open_office("hi", channels=(FakeChannel(),), access=ACCESS)
    office.gateway.queue.close()
    entry = receive(office)

    office = open_office("hi")
    office.gateway.recover()

    assert office.done(entry)["text"] == "hi"


@pytest.mark.parametrize(("days", "is_kept"), [(2, True), (4, False)])
def test_unread_reply_waits_as_many_days_as_the_setting_says(open_office, days: int, is_kept: bool) -> None:
    office = open_office("hi")
    office.done(office.submit())
    until("it to be there for the reader", lambda: states(office)[1] == ["sending"])

    office = open_office(clock=FakeClock(office.clock.ms + days * DAY_MS), unread_reply_days=3)
    office.gateway.recover()

    assert states(office)[0] == (["running"] if is_kept else ["committed"])
