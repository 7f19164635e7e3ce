"""Conversations and messages as they are stored."""

import gevent
import pytest

from fermix.messages import AssistantMessage, ConversationKey, ToolCall, ToolMessage, UserMessage

MAIN = ConversationKey("local", "main")

CALL = AssistantMessage("", (ToolCall("c1", "shell", {"command": "ls", "deep": {"a": [1, None]}}),), "hm")
RESULT = ToolMessage("c1", "shell", "file\0name é 🙂", is_error=True)


def said(stored):
    return [one.message for one in stored]


def test_open_makes_a_conversation_once(store):
    made = store.open(MAIN)

    assert store.open(MAIN) == made
    assert store.find(MAIN) == made
    assert store.find(ConversationKey("local", "main", "thread")) is None
    assert store.open(ConversationKey("local", "main", "thread")).id != made.id


def test_many_openers_at_once_get_the_same_conversation(store):
    opening = [gevent.spawn(store.open, MAIN) for _ in range(30)]
    gevent.joinall(opening, timeout=20, raise_error=True)

    assert len({one.value.id for one in opening}) == 1


def test_messages_come_back_as_they_went_in(store, append):
    talk = [UserMessage("hi"), CALL, RESULT, AssistantMessage("done")]
    conversation = store.open(MAIN)

    stored = append(conversation.id, talk[:1], turn="t1") + append(conversation.id, talk[1:], turn="t2")

    assert said(stored) == talk
    assert [one.position for one in stored] == [1, 2, 3, 4]
    assert store.tail(conversation.id, 10) == stored
    assert store.of_turn("t1") == stored[:1]
    assert store.of_turn("t2") == stored[1:]
    assert store.of_turn("t3") == []


def test_tail_is_the_last_messages_oldest_first(store, append):
    conversation = store.open(MAIN)
    append(conversation.id, [UserMessage(str(number)) for number in range(20)])

    assert [message.text for message in said(store.tail(conversation.id, 3))] == ["17", "18", "19"]
    assert store.tail(conversation.id, 0) == []
    assert store.tail("nobody", 5) == []


def test_recent_goes_back_to_the_call_that_a_result_answers(store, append):
    conversation = store.open(MAIN)
    append(conversation.id, [UserMessage("go"), CALL, RESULT, RESULT, RESULT, AssistantMessage("done")])

    assert said(store.recent(conversation.id, 2)[1]) == [
        CALL,
        RESULT,
        RESULT,
        RESULT,
        AssistantMessage("done"),
    ]
    assert said(store.recent(conversation.id, 1)[1]) == [AssistantMessage("done")]
    assert len(store.recent(conversation.id, 100)[1]) == 6


def test_positions_grow_per_conversation_under_many_writers(store, append):
    ids = [store.open(ConversationKey("local", str(number))).id for number in range(5)]

    def talk(conversation_id):
        for number in range(10):
            append(conversation_id, [UserMessage(str(number)), AssistantMessage(str(number))])

    gevent.joinall([gevent.spawn(talk, one) for one in ids for _ in range(3)], timeout=30, raise_error=True)

    for one in ids:
        assert [stored.position for stored in store.tail(one, 100)] == list(range(1, 61))


def test_append_to_no_conversation_is_refused(store, append):
    with pytest.raises(Exception, match="FOREIGN KEY"):
        append("nobody", [UserMessage("hi")])


def test_first_words_become_the_title(store, append):
    conversation = store.open(MAIN)
    append(conversation.id, [UserMessage("  tell me\n  a very " + "long " * 30)])
    append(conversation.id, [UserMessage("other words")])

    title = store.find(MAIN).title
    assert title.startswith("tell me a very long")
    assert len(title) == 60


def test_list_is_latest_first_with_counts_and_last_words(store, append):
    old, new = store.open(ConversationKey("local", "old")), store.open(ConversationKey("local", "new"))
    empty = store.open(ConversationKey("telegram", "7"))
    append(old.id, [UserMessage("hi"), AssistantMessage("hello " + "x" * 500)])
    append(new.id, [UserMessage("run it"), CALL, RESULT])

    summaries = store.list(None, 10)
    local = store.list("local", 1)

    assert [one.conversation.id for one in summaries] == [new.id, old.id, empty.id]
    assert [one.message_count for one in summaries] == [3, 2, 0]
    assert summaries[0].last_text == "run it"
    assert len(summaries[1].last_text) == 200
    assert summaries[2].last_text == ""
    assert [one.conversation.key.chat_id for one in local] == ["new"]
    assert store.list(None, 0) == []
    assert store.list(None, -1) == []
