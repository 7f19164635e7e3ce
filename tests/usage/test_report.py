"""What the owner is told: lines by whatever calls have in common."""

from __future__ import annotations

import pytest

from fermix.conversations import ConversationStore
from fermix.messages import ConversationKey, Usage
from fermix.usage import By, UsageStore
from tests.fakes import FakeClock
from tests.usage.spending import HOUR_MS, NOON_MS, model_call


@pytest.fixture
def store(db) -> UsageStore:
    return UsageStore(db)


def table(lines):
    return [(line.name, line.spent.calls, line.spent.cost_micro_usd) for line in lines]


def test_days_are_those_of_the_machines_zone_the_latest_first(store, record, zone) -> None:
    zone("America/New_York")
    record(model_call(ended_ms=NOON_MS - 8 * HOUR_MS), model_call(ended_ms=NOON_MS))

    assert table(store.lines(By.DAY)) == [("2025-12-01", 1, 100), ("2025-11-30", 1, 100)]


def test_dearest_model_comes_first_and_one_without_a_price_says_so(store, record) -> None:
    record(model_call(cost=5), model_call(model="big", cost=900), model_call(provider="ollama", cost=None))

    assert table(store.lines(By.MODEL)) == [
        ("openai/big", 1, 900),
        ("openai/gpt", 1, 5),
        ("ollama/gpt", 1, None),
    ]


def test_conversations_have_their_names_also_when_they_are_deleted(store, record, db) -> None:
    conversations = ConversationStore(db, FakeClock())
    main = conversations.open(ConversationKey("local", "main")).id
    topic = conversations.open(ConversationKey("telegram", "42", "7")).id
    record(model_call(cost=3), conversation=main)
    record(model_call(cost=2), conversation=topic)
    record(model_call(cost=1), conversation="gone")
    record(model_call(cost=0), conversation="")

    assert table(store.lines(By.CONVERSATION)) == [
        ("local:main", 1, 3),
        ("telegram:42:7", 1, 2),
        ("(deleted)", 1, 1),
        ("", 1, 0),
    ]


def test_one_conversation_by_model(store, record, db) -> None:
    key = ConversationKey("local", "main")
    main = ConversationStore(db, FakeClock()).open(key).id
    record(model_call(), conversation=main)
    record(model_call(model="other"), conversation="c2")

    assert table(store.lines(By.MODEL, of=key)) == [("openai/gpt", 1, 100)]
    assert store.total(of=key).calls == 1
    assert store.total(of=ConversationKey("local", "nowhere")).calls == 0


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (By.PROVIDER, ["openai"]),
        (By.TURN, ["t2", "t1"]),
        (By.JOB, ["", "daily"]),
        (By.PURPOSE, ["answer", "compaction"]),
    ],
)
def test_lines_of_every_kind(store, record, by: By, names: list[str]) -> None:
    record(model_call(cost=200))
    record(model_call(ended_ms=NOON_MS + 1, purpose="compaction"), turn="t2", job_id="daily")

    assert [line.name for line in store.lines(by)] == names


def test_only_what_is_asked_for(store, record) -> None:
    record(
        model_call(ended_ms=NOON_MS - HOUR_MS, model="early"), model_call(model="late", usage=Usage(1, 2))
    )

    assert [line.name for line in store.lines(By.MODEL, since_ms=NOON_MS)] == ["openai/late"]
    assert store.total(since_ms=NOON_MS).usage == Usage(1, 2)
    assert len(store.lines(By.MODEL, limit=1)) == 1
