"""Sums as people read them."""

from __future__ import annotations

import pytest

from fermix.messages import ConversationKey, Usage
from fermix.usage import Spent, UsageStore
from fermix.usage.told import UsageTeller
from fermix.usage.words import money, sentence
from tests.fakes import FakeClock
from tests.usage.spending import HOUR_MS, NOON_MS, model_call


@pytest.mark.parametrize(
    ("micro_usd", "words"),
    [
        (0, "$0"),
        (1, "$0.000001"),
        (100, "$0.0001"),
        (12_345, "$0.0123"),
        (2_500_000, "$2.50"),
        (1_234_567_890, "$1,234.57"),
    ],
)
def test_money_never_looks_like_nothing_when_it_is_something(micro_usd: int, words: str) -> None:
    assert money(micro_usd) == words


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (Spent(), "no calls"),
        (Spent(1, Usage(10, 2)), "1 call, 10 tokens read, 2 written, $0"),
        (
            Spent(2, Usage(1000, 2, 900), 0, 2, 1),
            "2 calls, about 1,000 tokens read (900 from the cache), 2 written, cost unknown",
        ),
        (
            Spent(3, Usage(10, 2), 40_000, 1),
            "3 calls, 10 tokens read, 2 written, at least $0.0400 (price of 1 call unknown)",
        ),
    ],
)
def test_sentence_says_what_is_known_and_what_is_not(spent: Spent, words: str) -> None:
    assert sentence(spent) == words


def test_usage_names_the_models_that_took_most_and_says_when_there_are_more(db, record) -> None:
    for number in range(6):
        record(model_call(cost=0, model=f"free-{number}"))
    record(model_call(cost=None, model="unpriced", usage=Usage(50_000, 9)))

    lines = UsageTeller(UsageStore(db), FakeClock(NOON_MS)).tell(None).splitlines()

    named = lines[lines.index("By model in the last 30 days:") + 2 :]
    assert named[0].startswith("- openai/unpriced: ")  # what is free does not come before what is not known
    assert len(named) == 6 and named[-1] == "- … and more: `fermix usage --by model`"


def test_usage_tells_today_apart_from_before_and_names_models_when_there_are_several(db, record) -> None:
    record(model_call(cost=10, ended_ms=NOON_MS - 13 * HOUR_MS))
    record(model_call(cost=5, model="small"))

    lines = UsageTeller(UsageStore(db), FakeClock(NOON_MS)).tell(None).splitlines()

    assert lines[0] == "Everything:"
    assert [line.rpartition(", ")[2] for line in lines if line.startswith("- ")] == [
        "$0.000005",
        "$0.000015",
        "$0.000015",
        "$0.000010",
        "$0.000005",
    ]
    assert lines[-2].startswith("- openai/gpt: ")
    elsewhere = UsageTeller(UsageStore(db), FakeClock(NOON_MS)).tell(ConversationKey("a", "b"))
    assert elsewhere.splitlines()[2:] == [
        "- today: no calls",
        "- last 30 days: no calls",
        "- in all: no calls",
    ]
