"""What a supervisor does when its parts end, fail, hang or cannot start."""

from __future__ import annotations

import gevent
import pytest
from gevent.event import Event

from fermix.daemon.supervisor import Backoff, Intensity, PartState, Supervisor
from fermix.errors import Cancelled, RestartsExceeded
from fermix.tasks import Child, ChildSpec, Restart, Strategy

SOON = Backoff(first_s=0.01, limit_s=0.02, jitter=0.0)
OFTEN = Intensity(restarts=100, period_s=60.0)


class FakeChild:
    """Runs until it is told to fail, finish or stop."""

    def __init__(self, part: FakePart) -> None:
        self.part = part
        self.done = Event()
        self.error: Exception | None = None

    def wait(self, timeout_s: float) -> bool:
        ended = self.done.wait(timeout_s)
        if ended and self.error is not None:
            raise self.error
        return bool(ended)

    def stop(self, timeout_s: float) -> None:
        self.part.diary.append(f"-{self.part.name}")
        if self.part.stop_hangs:
            gevent.sleep(60)
        if self.part.stop_fails:
            raise OSError("cannot stop")
        self.done.set()


class FakePart:
    """A child spec with a diary of its starts (`+name`) and stops (`-name`)."""

    def __init__(
        self,
        name: str,
        diary: list[str],
        *,
        restart: Restart = Restart.PERMANENT,
        shutdown_timeout_s: float = 1.0,
    ) -> None:
        self.name = name
        self.diary = diary
        self.stop_hangs = False
        self.stop_fails = False
        self.start_errors: list[Exception] = []
        self.start_takes_s = 0.0
        self.current: FakeChild | None = None
        self.spec = ChildSpec(name, self.start, restart=restart, shutdown_timeout_s=shutdown_timeout_s)

    def start(self) -> Child:
        gevent.sleep(self.start_takes_s)
        if self.start_errors:
            self.diary.append(f"!{self.name}")
            raise self.start_errors.pop(0)
        self.diary.append(f"+{self.name}")
        self.current = FakeChild(self)
        return self.current

    def fail(self, text: str = "broken") -> None:
        assert self.current is not None
        self.current.error = ValueError(text)
        self.current.done.set()

    def finish(self) -> None:
        assert self.current is not None
        self.current.done.set()


class Tree:
    """Three parts a, b, c below one supervisor that the test ends."""

    def __init__(self) -> None:
        self.diary: list[str] = []
        self.a, self.b, self.c = (FakePart(name, self.diary) for name in "abc")
        self.supervisor: Supervisor | None = None

    def start(
        self, strategy: Strategy, *, intensity: Intensity | None = OFTEN, is_tolerant: bool = False
    ) -> Supervisor:
        specs = [part.spec for part in (self.a, self.b, self.c)]
        self.supervisor = Supervisor(
            "tree", specs, strategy=strategy, intensity=intensity, backoff=SOON, is_tolerant=is_tolerant
        )
        return self.supervisor.start()

    def since_start(self) -> list[str]:
        return self.diary[3:]

    def states(self) -> list[PartState]:
        assert self.supervisor is not None
        return [report.state for report in self.supervisor.report()]


@pytest.fixture
def tree():
    tree = Tree()
    yield tree
    if tree.supervisor is not None:
        tree.supervisor.stop(2.0)


def until(condition, timeout_s: float = 3.0) -> None:
    with gevent.Timeout(timeout_s):
        while not condition():
            gevent.sleep(0.002)


RUNNING = [PartState.RUNNING] * 3


def test_parts_start_in_order_and_stop_in_mirrored_order(tree):
    supervisor = tree.start(Strategy.ONE_FOR_ONE)
    assert tree.states() == RUNNING

    supervisor.stop(1.0)

    assert tree.diary == ["+a", "+b", "+c", "-c", "-b", "-a"]
    assert tree.states() == [PartState.STOPPED] * 3
    assert supervisor.wait(0)


def test_one_for_one_restarts_only_the_part_that_failed(tree):
    tree.start(Strategy.ONE_FOR_ONE)

    tree.b.fail()
    until(lambda: tree.since_start() == ["+b"])

    assert tree.states() == RUNNING


def test_rest_for_one_restarts_the_part_and_those_started_after_it(tree):
    tree.start(Strategy.REST_FOR_ONE)

    tree.b.fail()
    until(lambda: len(tree.since_start()) == 3)

    assert tree.since_start() == ["-c", "+b", "+c"]
    assert tree.states() == RUNNING


def test_one_for_all_restarts_every_part(tree):
    tree.start(Strategy.ONE_FOR_ALL)

    tree.b.fail()
    until(lambda: len(tree.since_start()) == 5)

    assert tree.since_start() == ["-c", "-a", "+a", "+b", "+c"]
    assert tree.states() == RUNNING


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_part_that_crashes_again_and_again_ends_up_running(tree, strategy):
    tree.start(strategy)

    for _ in range(5):
        restarts = tree.supervisor.report()[0].restarts
        tree.a.fail()
        until(lambda restarts=restarts: tree.supervisor.report()[0].restarts == restarts + 1)
        until(lambda: tree.states() == RUNNING)

    assert tree.supervisor.report()[0].last_error == "ValueError: broken"


def test_a_permanent_part_that_ends_without_failing_is_started_again(tree):
    tree.start(Strategy.ONE_FOR_ONE)

    tree.a.finish()
    until(lambda: tree.since_start() == ["+a"])

    assert tree.supervisor.report()[0].last_error is None


def test_a_transient_part_stays_ended_when_it_finished_and_returns_when_it_failed(tree):
    tree.a = FakePart("a", tree.diary, restart=Restart.TRANSIENT)
    tree.b = FakePart("b", tree.diary, restart=Restart.TRANSIENT)
    tree.start(Strategy.ONE_FOR_ONE)

    tree.a.finish()
    tree.b.fail()
    until(lambda: "+b" in tree.since_start())

    assert tree.since_start() == ["+b"]
    assert tree.states() == [PartState.STOPPED, PartState.RUNNING, PartState.RUNNING]


def test_a_temporary_part_is_never_started_again_not_even_with_its_group(tree):
    tree.c = FakePart("c", tree.diary, restart=Restart.TEMPORARY)
    tree.start(Strategy.ONE_FOR_ALL)
    tree.c.fail("gone")
    until(lambda: tree.states()[2] is PartState.FAILED)

    tree.a.fail()
    until(lambda: tree.since_start()[-1:] == ["+b"])

    assert tree.since_start() == ["-b", "+a", "+b"]
    assert tree.supervisor.report()[2].last_error == "ValueError: gone"


def test_a_part_that_finished_is_not_revived_by_a_siblings_failure(tree):
    tree.c = FakePart("c", tree.diary, restart=Restart.TRANSIENT)
    tree.start(Strategy.REST_FOR_ONE)
    tree.c.finish()
    until(lambda: tree.states()[2] is PartState.STOPPED)

    tree.a.fail()
    until(lambda: tree.since_start()[-1:] == ["+b"])

    assert tree.since_start() == ["-b", "+a", "+b"]


def test_too_many_restarts_fail_the_supervisor_and_stop_its_parts(tree):
    supervisor = tree.start(Strategy.ONE_FOR_ONE, intensity=Intensity(restarts=2, period_s=60.0))

    for expected in (1, 2):
        tree.b.fail()
        until(lambda expected=expected: supervisor.report()[1].restarts == expected)
        until(lambda: tree.states() == RUNNING)
    tree.b.fail("for good")

    with pytest.raises(
        RestartsExceeded, match=r"'tree' gave up: 'b' failed again after 2 restarts.*for good"
    ):
        supervisor.wait(2.0)
    assert tree.diary[-2:] == ["-c", "-a"]
    assert tree.states() == [PartState.STOPPED, PartState.FAILED, PartState.STOPPED]


def test_restarts_older_than_the_period_are_forgotten(tree):
    supervisor = tree.start(Strategy.ONE_FOR_ONE, intensity=Intensity(restarts=1, period_s=0.15))

    for expected in (1, 2, 3):
        tree.b.fail()
        until(lambda expected=expected: supervisor.report()[1].restarts == expected)
        gevent.sleep(0.2)

    assert not supervisor.wait(0)


def test_a_nested_supervisor_that_gives_up_is_restarted_by_its_parent(tree):
    inner_starts: list[Supervisor] = []

    def start_inner() -> Supervisor:
        part = FakePart("leaf", tree.diary)
        inner = Supervisor("inner", [part.spec], intensity=Intensity(restarts=0), backoff=SOON).start()
        inner_starts.append(inner)
        tree.a = part
        return inner

    outer = Supervisor("outer", [ChildSpec("inner", start_inner)], intensity=OFTEN, backoff=SOON).start()
    assert [report.name for report in outer.report()] == ["inner", "inner/leaf"]

    tree.a.fail()
    until(lambda: len(inner_starts) == 2)

    assert [report.state for report in outer.report()] == [PartState.RUNNING, PartState.RUNNING]
    assert outer.report()[0].last_error.startswith("RestartsExceeded: 'inner' gave up")
    outer.stop(1.0)


def test_a_part_that_cannot_start_fails_start_and_stops_those_before_it(tree):
    tree.c.start_errors = [OSError("no disk")]

    with pytest.raises(OSError, match="no disk"):
        tree.start(Strategy.REST_FOR_ONE)

    assert tree.diary == ["+a", "+b", "!c", "-b", "-a"]


def test_a_tolerant_supervisor_tries_a_part_that_cannot_start_until_it_can(tree):
    tree.b.start_errors = [OSError("no network"), OSError("no network")]

    tree.start(Strategy.ONE_FOR_ONE, intensity=None, is_tolerant=True)
    until(lambda: tree.states() == RUNNING)

    assert tree.diary == ["+a", "!b", "+c", "!b", "+b"]
    assert tree.supervisor.report()[1].last_error == "OSError: no network"


def test_a_part_that_cannot_restart_is_tried_again_with_those_that_rest_on_it(tree):
    tree.start(Strategy.REST_FOR_ONE)
    tree.b.start_errors = [OSError("not yet"), OSError("not yet")]

    tree.b.fail()
    until(lambda: tree.since_start()[-1:] == ["+c"])

    assert tree.since_start() == ["-c", "!b", "!b", "+b", "+c"]
    assert tree.states() == RUNNING


def test_a_failure_during_anothers_backoff_restarts_the_larger_group_once(tree):
    slow = Backoff(first_s=0.1, limit_s=0.1, jitter=0.0)
    specs = [part.spec for part in (tree.a, tree.b, tree.c)]
    tree.supervisor = Supervisor(
        "tree", specs, strategy=Strategy.REST_FOR_ONE, intensity=OFTEN, backoff=slow
    ).start()

    tree.c.fail()
    until(lambda: tree.states()[2] is PartState.BACKOFF)
    tree.a.fail()
    until(lambda: tree.states() == RUNNING)
    gevent.sleep(0.15)

    assert tree.since_start() == ["-b", "+a", "+b", "+c"]


def test_one_for_one_restarts_a_sibling_while_another_is_slow_to_start(tree):
    tree.start(Strategy.ONE_FOR_ONE)
    tree.a.start_takes_s = 30.0

    tree.a.fail()
    until(lambda: tree.states()[0] is PartState.STARTING)
    tree.b.fail()
    until(lambda: tree.since_start() == ["+b"])

    assert tree.states() == [PartState.STARTING, PartState.RUNNING, PartState.RUNNING]


def test_stopping_ends_a_start_under_way_and_a_waiting_restart(tree):
    supervisor = tree.start(Strategy.ONE_FOR_ONE)
    tree.a.start_takes_s = 30.0
    tree.a.fail()
    until(lambda: tree.states()[0] is PartState.STARTING)

    with gevent.Timeout(2.0):
        supervisor.stop(1.0)

    assert tree.states() == [PartState.STOPPED] * 3
    assert tree.since_start() == ["-c", "-b"]


def test_stopping_while_it_starts_ends_what_was_started_and_starts_no_more(tree):
    tree.b.start_takes_s = 0.1
    supervisor = Supervisor("tree", [part.spec for part in (tree.a, tree.b, tree.c)])
    starting = gevent.spawn(supervisor.start)
    until(lambda: tree.diary == ["+a"])

    supervisor.stop(1.0)
    with pytest.raises(Cancelled):
        starting.get(timeout=2.0)

    assert tree.diary == ["+a", "-a", "+b", "-b"]


def test_a_part_that_hangs_or_fails_in_stop_does_not_keep_the_others(tree):
    tree.c = FakePart("c", tree.diary, shutdown_timeout_s=0.05)
    supervisor = tree.start(Strategy.ONE_FOR_ONE)
    tree.c.stop_hangs = True
    tree.b.stop_fails = True

    with gevent.Timeout(2.0):
        supervisor.stop(5.0)

    assert tree.since_start() == ["-c", "-b", "-a"]


def test_state_says_backoff_while_a_part_waits_for_its_restart(tree):
    specs = [tree.a.spec]
    slow = Backoff(first_s=30.0, jitter=0.0)
    tree.supervisor = Supervisor("tree", specs, backoff=slow).start()
    before = tree.supervisor.report()[0]

    tree.a.fail("no route")
    until(lambda: tree.states() == [PartState.BACKOFF])

    report = tree.supervisor.report()[0]
    assert (report.last_error, report.restarts) == ("ValueError: no route", 0)
    assert report.since_ms >= before.since_ms


def test_backoff_doubles_up_to_its_limit_and_jitter_only_shortens_it():
    backoff = Backoff(first_s=0.1, limit_s=1.0, jitter=0.5)

    assert [backoff.delay_s(failures, 0.0) for failures in (1, 2, 3, 4, 5, 5000)] == [
        0.1,
        0.2,
        0.4,
        0.8,
        1.0,
        1.0,
    ]
    assert backoff.delay_s(2, 1.0) == pytest.approx(0.1)


def test_a_part_that_ran_long_enough_starts_its_backoff_anew(tree):
    quick = Backoff(first_s=0.02, limit_s=60.0, jitter=0.0, healthy_after_s=0.0)
    tree.supervisor = Supervisor("tree", [tree.a.spec], intensity=OFTEN, backoff=quick).start()

    with gevent.Timeout(3.0):
        for expected in range(1, 13):  # doubled each time the last wait would be 41 s
            tree.a.fail()
            until(lambda expected=expected: tree.supervisor.report()[0].restarts == expected)
            until(lambda: tree.states() == [PartState.RUNNING])
