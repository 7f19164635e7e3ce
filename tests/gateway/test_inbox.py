"""Verbs on inbox rows."""

from __future__ import annotations

from fermix.messages import Usage
from fermix.tasks import TaskGroup
from fermix.trust import OPERATOR_ATTENDED
from fermix.usage import Spent
from tests.fakes import inbound


def test_second_acceptance_gives_the_first_entry_and_is_not_new(open_office) -> None:
    inbox = open_office().inbox

    first, is_new = inbox.accept(inbound("hello"), OPERATOR_ATTENDED)
    again, is_new_again = inbox.accept(inbound("other words"), OPERATOR_ATTENDED)

    assert (is_new, is_new_again) == (True, False)
    assert again == first and again.inbound.text == "hello"


def test_same_id_on_two_channels_is_two_messages(open_office) -> None:
    inbox = open_office().inbox

    first, _ = inbox.accept(inbound(channel="local"), OPERATOR_ATTENDED)
    second, is_new = inbox.accept(inbound(channel="other"), OPERATOR_ATTENDED)

    assert is_new and first.turn_id != second.turn_id


def test_many_at_once_with_one_id_are_one_message(open_office) -> None:
    inbox, group, found = open_office().inbox, TaskGroup("senders"), []
    for _ in range(20):
        group.start(lambda: found.append(inbox.accept(inbound(), OPERATOR_ATTENDED)))

    assert group.join(10)
    assert sum(is_new for _, is_new in found) == 1
    assert len({entry.turn_id for entry, _ in found}) == 1


def test_unfinished_come_in_the_order_they_were_accepted(open_office) -> None:
    office = open_office()  # its clock stands still: the ids alone do not tell the order
    accepted = [office.inbox.accept(inbound(id=str(number)), OPERATOR_ATTENDED)[0] for number in range(50)]

    assert [entry.id for entry in office.inbox.unfinished()] == [entry.id for entry in accepted]


def test_message_accepted_before_is_found_and_another_is_not(open_office) -> None:
    inbox = open_office().inbox
    entry, _ = inbox.accept(inbound(), OPERATOR_ATTENDED)

    assert inbox.known("local", "m1") == entry
    assert inbox.known("local", "m2") is None


def test_every_word_of_a_message_is_read_back(open_office) -> None:
    office = open_office()
    message = inbound("ü\0🙂" * 20_000, cwd="/tmp/x")  # noqa: S108 - a name only
    entry, _ = office.inbox.accept(message, OPERATOR_ATTENDED)

    assert office.inbox.load(entry.id).inbound == message
    found = office.inbox.of_turn(entry.turn_id)
    assert found is not None and found.inbound == message
    assert office.inbox.of_turn("unknown") is None and office.inbox.turn("unknown") is None


def test_beginnings_count_as_lives_and_only_those_not_handed_back_as_attempts(open_office) -> None:
    office = open_office()
    inbox = office.inbox
    entry, _ = inbox.accept(inbound(), OPERATOR_ATTENDED)

    def begin() -> int:
        now = inbox.of_turn(entry.turn_id)
        return office.db.write(
            lambda connection: inbox.begin(connection, now, "c", provider="p", model="m")
        )

    lives = [begin(), begin()]
    assert inbox.of_turn(entry.turn_id).attempts == 2
    handed = inbox.of_turn(entry.turn_id)
    lives.append(begin())
    inbox.hand_back(handed)

    assert lives == [1, 2, 3]
    assert (inbox.of_turn(entry.turn_id).state, inbox.of_turn(entry.turn_id).attempts) == ("received", 2)


def test_failed_turn_is_told_from_an_answered_one_at_the_end(open_office) -> None:
    office = open_office()
    inbox, states = office.inbox, []
    for number, state in enumerate(("completed", "failed", "cancelled", "interrupted")):
        entry, _ = inbox.accept(inbound(id=str(number)), OPERATOR_ATTENDED)
        office.db.write(
            lambda connection, entry=entry: inbox.begin(connection, entry, "c", provider="", model="")
        )
        office.db.write(
            lambda connection, entry=entry, state=state: inbox.end(
                connection, entry, state, Spent(1, Usage(1, 2, 3), 40), None
            )
        )
        office.change("UPDATE inbox SET state = 'delivered' WHERE id = ?", entry.id)
        inbox.commit(entry.turn_id)
        inbox.commit(entry.turn_id)
        states.append(inbox.of_turn(entry.turn_id).state)

    assert states == ["committed", "failed", "committed", "committed"]
    assert inbox.turn(entry.turn_id).usage == Usage(1, 2, 3)
    assert inbox.turn(entry.turn_id).cost_micro_usd == 40
