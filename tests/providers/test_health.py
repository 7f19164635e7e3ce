"""The gate in front of a provider: when it opens, how long, and what closes it again."""

from __future__ import annotations

import pytest

from fermix.providers.health import COUNT, FIRST_REST_S, LONG_REST_S, LONGEST_REST_S, Gate, GateState
from fermix.providers.port import Failed, FailureKind
from tests.fakes import FakeClock


def failed(kind: FailureKind, retry_after_s: float | None = None) -> Failed:
    return Failed(kind, "no", retryable=True, retry_after_s=retry_after_s)


def gate(clock: FakeClock, *outcomes: Failed | None) -> Gate:
    made = Gate(clock)
    for outcome in outcomes:
        made.enter()
        made.leave(outcome)
    return made


@pytest.mark.parametrize("kind", [FailureKind.AUTH, FailureKind.QUOTA, FailureKind.MODEL_UNKNOWN])
def test_what_a_person_must_repair_opens_it_at_once_and_long(kind: FailureKind) -> None:
    opened = gate(FakeClock(), failed(kind))

    assert (opened.state, opened.rest_s) == (GateState.OPEN, LONG_REST_S)
    assert not opened.enter() and not opened.has_to_wait


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.PROVIDER_UNAVAILABLE,
        FailureKind.TIMEOUT,
        FailureKind.TRANSPORT,
        FailureKind.PROTOCOL,
    ],
)
def test_passing_troubles_open_it_when_they_come_again(kind: FailureKind) -> None:
    clock = FakeClock()

    assert gate(clock, *[failed(kind)] * (COUNT - 1)).state is GateState.CLOSED
    assert gate(clock, *[failed(kind)] * COUNT).rest_s == FIRST_REST_S
    assert gate(clock, failed(kind), None, failed(kind)).state is GateState.CLOSED


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.CANCELLED,
        FailureKind.CONTENT_REFUSED,
        FailureKind.CONTEXT_OVERFLOW,
        FailureKind.INVALID_REQUEST,
        FailureKind.IMAGE_UNSUPPORTED,
    ],
)
def test_the_questions_own_fault_says_nothing_of_the_provider(kind: FailureKind) -> None:
    assert gate(FakeClock(), *[failed(kind)] * 9).state is GateState.CLOSED


def test_a_time_the_provider_named_is_kept_to_the_second() -> None:
    clock = FakeClock()
    opened = gate(clock, failed(FailureKind.RATE_LIMITED, 90.0))

    clock.ms += 89_999
    assert not opened.enter() and opened.has_to_wait
    clock.ms += 1
    assert opened.enter() and not opened.has_to_wait


def test_one_question_at_a_time_goes_through_when_the_rest_is_over() -> None:
    clock = FakeClock()
    opened = gate(clock, *[failed(FailureKind.TRANSPORT)] * COUNT)
    clock.ms += int(FIRST_REST_S * 1000)

    assert opened.state is GateState.HALF_OPEN
    assert [opened.enter(), opened.enter()] == [True, False]
    opened.leave(None)
    assert opened.state is GateState.CLOSED


def test_a_question_that_fails_opens_it_again_for_longer_up_to_a_limit() -> None:
    clock = FakeClock()
    opened = gate(clock, *[failed(FailureKind.TRANSPORT)] * COUNT)
    rests = []
    for _ in range(20):
        clock.ms += int(opened.rest_s * 1000)
        assert opened.enter()
        opened.leave(failed(FailureKind.TRANSPORT))
        rests.append(opened.rest_s)

    assert rests[0] == FIRST_REST_S * 2
    assert rests == sorted(rests) and rests[-1] == LONGEST_REST_S


def test_a_question_that_was_given_up_tells_nothing_and_lets_the_next_one_through() -> None:
    clock = FakeClock()
    opened = gate(clock, *[failed(FailureKind.TRANSPORT)] * COUNT)
    clock.ms += int(FIRST_REST_S * 1000)
    assert opened.enter()

    opened.abandon()

    assert opened.state is GateState.HALF_OPEN and opened.enter()
