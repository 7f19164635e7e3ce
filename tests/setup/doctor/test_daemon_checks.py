"""What a daemon is asked, and what its answers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fermix.errors import DeadlineExceeded, FermixError, OwnerError
from fermix.setup.doctor import daemon, provider
from fermix.setup.doctor.finding import State
from fermix.setup.doctor.scene import Call, Scene
from tests.setup.doctor.conftest import one

SceneMaker = Callable[..., Scene]
WELL: dict[str, Any] = {
    "pid": 2,
    "arbiter_pid": 1,
    "mode": "full",
    "children": [{"name": "db", "state": "running", "restarts": 0}],
    "checks": [{"name": "database", "is_ok": True, "detail": "wal"}],
}


def answering(**answer: object) -> Call:
    def call(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        assert (method, dict(params)) == ("provider.probe", {})
        return answer

    return call


def raising(error: Exception) -> Call:
    def call(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        raise error

    return call


def test_daemon_that_does_not_run_is_no_failure(scene: SceneMaker) -> None:
    assert one(daemon.look(scene()), State.SKIPPED).hint == "fermix start"


def test_daemon_that_is_well_is_good(scene: SceneMaker) -> None:
    assert [each.state for each in daemon.look(scene(status=WELL))] == [State.OK]


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (DeadlineExceeded("It did not answer within 5 s.", hint="fermix logs -n 20"), "fermix restart"),
        (OwnerError("The socket cannot be used.", hint="set FERMIX_HOME"), "set FERMIX_HOME"),
    ],
)
def test_silent_daemon_is_named(scene: SceneMaker, error: FermixError, hint: str) -> None:
    finding = one(daemon.look(scene(silence=error)), State.FAIL)

    assert (finding.saw, finding.hint) == (error.message, hint)


def test_every_failing_part_is_named(scene: SceneMaker) -> None:
    broken = {
        **WELL,
        "children": [{"name": "gateway", "state": "failed", "restarts": 7, "last_error": "no room"}],
        "checks": [{"name": "database", "is_ok": False, "detail": "damaged"}],
    }

    told = " ".join(each.saw for each in daemon.look(scene(status=broken)) if each.state is State.FAIL)

    assert all(word in told for word in ("'gateway'", "failed", "no room", "database", "damaged"))


def test_failing_part_is_told_in_one_sentence(scene: SceneMaker) -> None:
    broken = {**WELL, "checks": [{"name": "database", "is_ok": False, "detail": "No room is left."}]}

    assert one(daemon.look(scene(status=broken)), State.FAIL).saw == "Its database: No room is left."


@pytest.mark.parametrize(
    "status", [{}, {"children": 3, "checks": "x"}, {"children": [None], "checks": [1]}]
)
def test_odd_status_is_read_without_a_crash(scene: SceneMaker, status: dict[str, Any]) -> None:
    assert [each.state for each in daemon.look(scene(status=status))] == [State.OK]


def test_provider_that_answers_is_good(scene: SceneMaker) -> None:
    asked = scene(status=WELL, call=answering(status="ok", model="m", latency_ms=12))

    assert "'m' answered in 12 ms" in one(provider.look(asked), State.OK).saw


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("auth", State.FAIL),
        ("address", State.FAIL),
        ("model_unknown", State.FAIL),
        ("quota", State.FAIL),
        ("rate_limited", State.WARN),
        ("timeout", State.FAIL),
        ("failed", State.FAIL),
        ("something new", State.FAIL),
    ],
)
def test_provider_that_refuses_is_told_with_its_command(
    scene: SceneMaker, status: str, state: State
) -> None:
    asked = scene(status=WELL, call=answering(status=status, message="It said no.", hint="fermix setup"))

    finding = one(provider.look(asked), state)

    assert finding.saw == f"It said no. ({status})"
    assert finding.hint == "fermix setup"


def test_provider_is_not_asked_without_a_daemon(scene: SceneMaker) -> None:
    assert one(provider.look(scene()), State.SKIPPED).hint == "fermix doctor --full"


def test_provider_is_not_asked_through_what_cannot_be_used(scene: SceneMaker) -> None:
    start = raising(AssertionError("a daemon was started"))
    silent = scene(silence=OwnerError("Silence."), start=lambda: start)
    broken = scene(wanted=lambda: None, start=lambda: start)

    assert one(provider.look(silent), State.SKIPPED).hint == "fermix restart"
    assert one(provider.look(broken), State.SKIPPED).hint == "fermix config check"


def test_private_daemon_is_started_only_where_allowed(scene: SceneMaker) -> None:
    asked = scene(start=lambda: answering(status="ok", model="m", latency_ms=1))

    assert [each.state for each in provider.look(asked)] == [State.OK]


def test_daemon_too_old_for_the_question_is_no_failure(scene: SceneMaker) -> None:
    error = OwnerError("No method named 'provider.probe'.")
    error.code = "method_unknown"

    finding = one(provider.look(scene(status=WELL, call=raising(error))), State.SKIPPED)

    assert finding.hint == "fermix restart"


def test_daemon_that_does_not_answer_the_question_is_told(scene: SceneMaker) -> None:
    asked = scene(
        status=WELL, call=raising(DeadlineExceeded("It took too long.", hint="fermix logs -n 20"))
    )

    finding = one(provider.look(asked), State.FAIL)

    assert finding.saw == "It could not be asked: It took too long."
    assert finding.hint == "fermix logs -n 20"
