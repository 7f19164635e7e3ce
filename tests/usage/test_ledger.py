"""The sums of today: counted at once, found again after a restart, begun anew at midnight."""

from __future__ import annotations

import pytest

from fermix.usage import Ledger, Spent
from fermix.usage.days import day_of
from tests.fakes import FakeClock
from tests.usage.spending import HOUR_MS, NOON_MS, model_call


def test_call_counts_at_once_for_its_conversation_its_provider_and_the_day(db) -> None:
    ledger = Ledger(db, FakeClock(NOON_MS))

    ledger.note(model_call(cost=100), conversation_id="c1")
    ledger.note(model_call(cost=30, provider="xai"), conversation_id="c1")
    ledger.note(model_call(cost=None), conversation_id="c2")

    assert ledger.of_conversation("c1").cost_micro_usd == 130
    assert ledger.of_conversation("c2").cost_micro_usd is None
    assert ledger.of_provider("openai").priced_micro_usd == 100
    assert ledger.of_provider("openai").unpriced == 1
    assert ledger.of_all.calls == 3
    assert ledger.of_conversation("c3") == ledger.of_provider("mistral") == Spent()


def test_next_life_goes_on_with_what_was_spent_since_midnight(db, record) -> None:
    before_midnight = NOON_MS - 13 * HOUR_MS
    record(model_call(cost=1_000_000, ended_ms=before_midnight))
    record(model_call(cost=20), model_call(cost=5, provider="xai"), conversation="c2")

    ledger = Ledger(db, FakeClock(NOON_MS))

    assert ledger.of_all.cost_micro_usd == 25
    assert ledger.of_conversation("c1") == Spent()
    assert ledger.of_conversation("c2").calls == 2
    assert ledger.of_provider("xai").cost_micro_usd == 5


def test_midnight_of_the_machines_zone_begins_anew(db, zone) -> None:
    zone("Europe/Berlin")
    clock = FakeClock(NOON_MS)
    ledger = Ledger(db, clock)
    ledger.note(model_call(), conversation_id="c1")

    clock.ms = NOON_MS + 11 * HOUR_MS - 1  # 23:59:59.999 there
    assert ledger.of_conversation("c1").calls == 1
    clock.ms += 1

    assert ledger.of_conversation("c1") == ledger.of_provider("openai") == ledger.of_all == Spent()


@pytest.mark.parametrize(
    ("ms", "hours"),
    [
        (NOON_MS, 24),
        (1_774_785_600_000, 23),  # 2026-03-29 12:00 UTC, when summer time begins
        (1_792_929_600_000, 25),  # 2026-10-25 12:00 UTC, when it ends
    ],
)
def test_days_on_which_clocks_are_changed_have_their_own_length(zone, ms: int, hours: int) -> None:
    zone("Europe/Berlin")

    begins_ms, ends_ms = day_of(ms)

    assert begins_ms < ms < ends_ms
    assert ends_ms - begins_ms == hours * HOUR_MS
    assert day_of(begins_ms) == day_of(ends_ms - 1) == (begins_ms, ends_ms)


def test_clock_that_is_set_back_counts_the_earlier_day(db) -> None:
    clock = FakeClock(NOON_MS)
    ledger = Ledger(db, clock)
    ledger.note(model_call(), conversation_id="c1")

    clock.ms -= 24 * HOUR_MS

    assert ledger.of_all == Spent()
