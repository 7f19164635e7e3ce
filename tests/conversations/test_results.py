"""Long tool results: kept for a while, each for its own conversation."""

from __future__ import annotations

import random

import pytest

from fermix.conversations.results import LONGEST_BYTES, ResultStore
from fermix.messages import ConversationKey
from fermix.tasks import ThreadPool
from tests.fakes import FakeClock

KEY, OTHER = ConversationKey("local", "main"), ConversationKey("local", "other")


@pytest.fixture
def results(db):
    pool = ThreadPool(2)
    yield ResultStore(db, pool, FakeClock(), total_bytes=100_000)
    pool.stop()


def test_result_comes_back_whole_and_only_in_its_own_conversation(results) -> None:
    text = "line\n" * 100_000 + "ende: ä €"

    id = results.put(KEY, "t1", "shell", text)

    found = results.get(KEY, id)
    assert (found.tool, found.text, found.is_cut) == ("shell", text, False)
    assert results.get(OTHER, id) is None
    assert results.get(KEY, "nonsense") is None


def test_end_of_a_giant_is_not_kept_and_that_is_told(results) -> None:
    found = results.get(KEY, results.put(KEY, "t1", "shell", "ä" * LONGEST_BYTES))

    assert found.is_cut
    assert found.text == "ä" * (LONGEST_BYTES // 2)


def test_oldest_go_when_all_together_take_too_much(results) -> None:
    dice = random.Random(4)
    ids = [results.put(KEY, "t1", "shell", dice.randbytes(20_000).hex()) for _ in range(12)]

    assert results.get(KEY, ids[0]) is None
    assert results.get(KEY, ids[-1]) is not None
