"""The cache of recent messages: small, and never wrong about what is in the store."""

import random

import gevent
import pytest

from fermix.conversations import ConversationStore, Histories, Summary
from fermix.messages import AssistantMessage, ConversationKey, ToolCall, ToolMessage, UserMessage


@pytest.fixture
def ids(store):
    return [store.open(ConversationKey("local", str(number))).id for number in range(4)]


def user(*texts):
    return [UserMessage(text) for text in texts]


def tool_steps(count):
    """An assistant's call with `count` results."""
    calls = tuple(ToolCall(f"c{number}", "shell", {}) for number in range(count))
    return [AssistantMessage("", calls), *(ToolMessage(call.id, "shell", "out") for call in calls)]


def test_miss_loads_the_tail_and_a_hit_does_not(store, append, ids):
    append(ids[0], user("a", "b", "c"))
    histories = Histories(store, messages=2)

    assert histories.get(ids[0]) == user("b", "c")
    append(ids[0], user("not told"))
    assert histories.get(ids[0]) == user("b", "c")


def test_extend_adds_what_was_committed(store, append, ids):
    histories = Histories(store)
    assert histories.get(ids[0]) == []

    append(ids[0], user("a"))
    histories.extend(ids[0], user("a"))

    assert histories.get(ids[0]) == user("a")


def test_new_conversation_is_held_from_its_first_message_on(store, append, ids):
    histories = Histories(store)
    append(ids[0], user("a"))

    histories.begin(ids[0], user("a"))

    append(ids[0], user("not told"))
    assert histories.get(ids[0]) == user("a")
    histories.extend(ids[0], user("b"))
    assert histories.get(ids[0]) == user("a", "b")


def test_conversation_evicted_in_the_middle_of_a_turn_loses_nothing(store, append, ids):
    histories = Histories(store, conversations=1)
    histories.get(ids[0])
    append(ids[0], user("first"))
    histories.extend(ids[0], user("first"))

    histories.get(ids[1])
    append(ids[0], user("second"))
    histories.extend(ids[0], user("second"))

    assert len(histories) == 1
    assert histories.get(ids[0]) == user("first", "second")


def test_what_is_returned_is_the_callers_own(store, append, ids):
    histories = Histories(store)
    append(ids[0], user("a"))

    histories.get(ids[0]).clear()

    assert histories.get(ids[0]) == user("a")


class ChangedMeanwhile(ConversationStore):
    """A store whose conversation grows between a load's read and its return."""

    def __init__(self, db, clock, change):
        super().__init__(db, clock)
        self._change = change

    def recent(self, conversation_id, limit):
        stored = super().recent(conversation_id, limit)
        if self._change:
            self._change.pop()()
        return stored


def test_message_committed_during_a_load_is_not_missed(db, store, append, ids):
    def grow():
        append(ids[0], user("new"))
        histories.extend(ids[0], user("new"))

    histories = Histories(ChangedMeanwhile(db, store._clock, [grow]))
    append(ids[0], user("old"))

    assert histories.get(ids[0]) == user("old", "new")
    assert histories.get(ids[0]) == user("old", "new")


def test_never_begins_with_a_result(store, append, ids):
    talk = [*user("go"), *tool_steps(5)]
    append(ids[0], talk)
    histories = Histories(store, messages=4)

    assert histories.get(ids[0]) == talk[1:]

    longer = [*user("again"), *tool_steps(3)]
    for message in longer:
        append(ids[0], [message])
        histories.extend(ids[0], [message])
        assert not isinstance(histories.get(ids[0])[0], ToolMessage)
    histories.forget(ids[0])
    assert histories.get(ids[0]) == longer[1:]


def test_long_talk_stays_bounded(store, append, ids):
    histories = Histories(store, messages=20)
    histories.get(ids[0])
    for number in range(200):
        append(ids[0], user(str(number)))
        histories.extend(ids[0], user(str(number)))
        held = histories.get(ids[0])
        assert len(held) <= 25
        assert held[-1].text == str(number)
    assert len(held) >= 20


def test_memory_in_all_is_bounded(store, append, ids):
    histories = Histories(store, size_bytes=10_000)
    for one in ids:
        append(one, user("x" * 4000))
        histories.get(one)

    assert len(histories) == 2
    assert histories.get(ids[0]) == user("x" * 4000)


def test_least_recently_used_goes_first(store, append, ids):
    histories = Histories(store, conversations=2)
    for one in ids[:2]:
        append(one, user("kept"))
        histories.get(one)
    histories.get(ids[0])
    histories.get(ids[2])
    append(ids[0], user("not told"))
    append(ids[1], user("not told"))

    assert histories.get(ids[0]) == user("kept")
    assert histories.get(ids[1]) == user("kept", "not told")


def test_many_turns_at_once_in_a_small_cache_agree_with_the_store(store, append, ids):
    histories = Histories(store, conversations=2, messages=10)

    def turns(one, seed):
        seeded = random.Random(seed)
        for number in range(15):
            histories.get(one)
            step = [*user(str(number)), *tool_steps(seeded.randint(0, 3)), AssistantMessage("ok")]
            for message in step:
                append(one, [message])
                histories.extend(one, [message])
                gevent.sleep(0)
                held = histories.get(one)
                whole = [stored.message for stored in store.tail(one, 1000)]
                assert whole[-len(held) :] == held
                assert not isinstance(held[0], ToolMessage)

    running = [gevent.spawn(turns, one, seed) for seed, one in enumerate(ids)]
    gevent.joinall(running, timeout=60, raise_error=True)


def summed_up(db, store, id, summary, kept):
    return db.write(lambda connection: store.sum_up(connection, id, "turn-1", summary, kept))


def test_summary_stands_before_what_is_kept_in_memory_and_after_a_restart(db, store, append, ids):
    append(ids[0], user("a", "b", "c", "d"))
    histories = Histories(store)
    histories.get(ids[0])
    summary = Summary(first_request="a", text="said a and b", messages=2)

    assert summed_up(db, store, ids[0], summary, user("c", "d"))
    histories.sum_up(ids[0], summary, 2)

    expected = [*summary.shown(), *user("c", "d")]
    assert histories.get(ids[0]) == Histories(store).get(ids[0]) == expected
    assert histories.summary_of(ids[0]) == summary
    append(ids[0], user("e"))
    histories.extend(ids[0], user("e"))
    assert histories.get(ids[0]) == Histories(store).get(ids[0]) == [*expected, *user("e")]
    assert len(store.tail(ids[0], 10)) == 5


def test_summary_stays_when_the_oldest_messages_go(db, store, append, ids):
    append(ids[0], user("a", "b"))
    histories = Histories(store, messages=4)
    summary = Summary(first_request="a", text="said a", messages=1)
    assert summed_up(db, store, ids[0], summary, user("b"))

    for number in range(20):
        append(ids[0], user(str(number)))
        histories.extend(ids[0], user(str(number)))

    shown = histories.get(ids[0])
    assert shown[:2] == summary.shown()
    assert shown[-1] == UserMessage("19") and len(shown) <= 8


def test_summary_of_a_conversation_that_ends_otherwise_is_not_stored(db, store, append, ids):
    append(ids[0], user("a", "b"))

    assert not summed_up(db, store, ids[0], Summary(first_request="a", text="x"), user("z"))
    assert Histories(store).get(ids[0]) == user("a", "b")
