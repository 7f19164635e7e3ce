"""The lowest rows: ids, trust, secrets, paths, events, errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix import errors, events
from fermix.ids import is_id, new_id, ulid_of
from fermix.paths import Home
from fermix.secret import Secret
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Policy, Standing, Trust

STANDINGS = [Standing(*values) for values in product(Trust, [True, False], [True, False])]


def test_ids_sort_by_the_time_they_were_made() -> None:
    moments = [0, 1, 999, 1_700_000_000_000, 1_700_000_000_001, (1 << 48) - 1]
    ids = [new_id(moment) for moment in moments]

    assert ids == sorted(ids) and all(map(is_id, ids))
    assert {len(id) for id in ids} == {26}
    assert len({new_id(5) for _ in range(1000)}) == 1000


def test_time_in_an_id_is_as_the_format_says() -> None:
    assert new_id(1_469_918_176_385).startswith("01ARYZ6S41")  # the example of the ULID specification


@pytest.mark.parametrize(
    "text", ["", "x", "8" + "0" * 25, "0" * 25, "0" * 27, "0" * 25 + "I", "0" * 25 + "a", "٠" * 26]
)
def test_what_is_no_id_is_told(text: str) -> None:
    assert not is_id(text)


@pytest.mark.parametrize("first", STANDINGS)
@pytest.mark.parametrize("second", STANDINGS)
def test_narrowing_never_reaches_more_than_either(first: Standing, second: Standing) -> None:
    both = first.narrowed(second)

    assert both == second.narrowed(first) == both.narrowed(first)
    assert both.tainted is (first.tainted or second.tainted)
    for policy in Policy:
        assert not both.may_reach(policy) or (first.may_reach(policy) and second.may_reach(policy))


def test_taint_stays_and_takes_no_trust() -> None:
    tainted = OPERATOR_ATTENDED.taint()

    assert tainted.tainted and tainted.taint() == tainted and tainted.trust is Trust.OPERATOR
    assert not OPERATOR_ATTENDED.tainted and not GUEST_ATTENDED.tainted


@given(st.text(min_size=4))
def test_secret_never_shows_itself(text: str) -> None:
    secret = Secret(text)

    shown = {
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r:>5}",
        repr([secret]),
        repr({"k": secret}),
    }

    assert all("***" in one for one in shown)
    assert secret.reveal() == text and secret == Secret(text)


def test_secret_in_an_exception_does_not_show() -> None:
    assert "sk-1" not in repr(ValueError(Secret("sk-1"))) + str(ValueError(Secret("sk-1")))


@pytest.fixture
def no_sink() -> Iterator[None]:
    yield
    events.set_sink(None)


def test_events_reach_the_one_sink_and_no_other(no_sink: None) -> None:
    first, second = [], []
    events.emit("turn.begun", turn_id="t")
    events.set_sink(lambda name, fields: first.append((name, fields)))
    events.emit("turn.begun", turn_id="t")
    events.set_sink(lambda name, fields: second.append((name, fields)))
    events.emit("turn.ended", turn_id="t", status="ok")

    assert first == [("turn.begun", {"turn_id": "t"})]
    assert second == [("turn.ended", {"turn_id": "t", "status": "ok"})]


def every_error(root: type[errors.FermixError] = errors.FermixError) -> list[type[errors.FermixError]]:
    mine = [error for error in root.__subclasses__() if error.__module__ == "fermix.errors"]
    return mine + [below for error in mine for below in every_error(error)]


def test_every_error_has_a_code_of_its_own_and_is_drawn_in_the_tree() -> None:
    found = every_error()

    assert len({error.code for error in found}) == len(found)
    for error in found:
        assert error.__name__ in (errors.__doc__ or ""), error
        assert error.__doc__ and error.exit_status in (1, 2, 3)


def test_error_carries_message_and_hint() -> None:
    error = errors.UsageError("No.", hint="Try b.")

    assert (str(error), error.message, error.hint, error.exit_status) == ("No.", "No.", "Try b.", 2)


def test_home_is_the_same_from_every_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "here")

    assert Home.find({}).root == Path.cwd() / "here" / ".fermix"
    assert Home.find({"FERMIX_HOME": "there"}).root == Path.cwd() / "there"


def test_id_of_a_digest_is_always_the_same_and_another_one_s_is_another() -> None:
    digests = [bytes([number]) * 32 for number in (0, 1, 255)]

    assert all(is_id(ulid_of(digest)) for digest in digests)
    assert len({ulid_of(digest) for digest in digests}) == 3
    assert ulid_of(digests[1]) == ulid_of(digests[1])
