"""Calls in the database: whole, summed by turn, and unknown where a price is."""

from __future__ import annotations

import pytest

from fermix.errors import StoreError
from fermix.messages import Usage
from fermix.usage import Spent, record_within, spent_within
from tests.usage.spending import model_call


def of_turn(db, turn_id):
    return db.read(lambda connection: spent_within(connection, turn_id))


def test_turn_is_the_sum_of_its_calls_in_all_its_lives(db, record) -> None:
    record(model_call(cost=100))
    record(model_call(cost=50, usage=Usage(10, 1)), model_call(cost=1, usage=Usage(), outcome="transport"))
    record(model_call(), turn="t2")

    assert of_turn(db, "t1") == Spent(3, Usage(1010, 201, 300, 50, 20), 151)
    assert of_turn(db, "t1").tokens == 1211
    assert of_turn(db, "nobody's") == Spent()


def test_one_unknown_price_makes_the_whole_unknown_and_keeps_what_is_known(db, record) -> None:
    record(model_call(cost=70), model_call(cost=None, is_estimated=True))

    spent = of_turn(db, "t1")

    assert (spent.cost_micro_usd, spent.priced_micro_usd, spent.unpriced, spent.estimated) == (
        None,
        70,
        1,
        1,
    )


def test_free_is_known(db, record) -> None:
    record(model_call(cost=0))

    assert of_turn(db, "t1").cost_micro_usd == 0


def test_calls_go_with_the_commit_they_are_part_of(db) -> None:
    def work(connection):
        record_within(connection, [model_call()], turn_id="t1", conversation_id="c1")
        raise StoreError("the step could not be stored")

    with pytest.raises(StoreError):
        db.write(work)

    assert of_turn(db, "t1") == Spent()


def test_sum_in_memory_is_the_sum_of_the_rows(db, record) -> None:
    calls = [model_call(), model_call(cost=None), model_call(is_estimated=True, usage=Usage(5, 5))]
    record(*calls)

    assert Spent.total(calls) == of_turn(db, "t1")
