"""Conversations that begin with what was said elsewhere."""

import gevent

from fermix.messages import AssistantMessage, ConversationKey, UserMessage

KEY = ConversationKey("local", "v1-x")
SAID = [UserMessage("hi there"), AssistantMessage("hello")]


def test_seeded_messages_are_its_history_and_title(store):
    store.seed(KEY, SAID)

    conversation = store.find(KEY)
    assert [one.message for one in store.tail(conversation.id, 10)] == SAID
    assert conversation.title == "hi there"


def test_it_is_put_away_until_somebody_speaks(store, append):
    store.seed(KEY, SAID)
    assert store.list("local", 10) == []

    append(store.find(KEY).id, [UserMessage("and now?")])

    assert [one.conversation.key for one in store.list("local", 10)] == [KEY]


def test_conversation_that_has_begun_stays_as_it_is(store, append):
    append(store.open(KEY).id, [UserMessage("own words")])

    store.seed(KEY, SAID)

    assert [one.message for one in store.tail(store.find(KEY).id, 10)] == [UserMessage("own words")]


def test_many_seeds_at_once_are_one(store):
    gevent.joinall([gevent.spawn(store.seed, KEY, SAID) for _ in range(20)], timeout=20, raise_error=True)

    assert [one.message for one in store.tail(store.find(KEY).id, 100)] == SAID
