"""Greenlets that belong together, and what stops them."""

from __future__ import annotations

import threading

import gevent
import gevent.monkey
import pytest

from fermix.errors import Cancelled, DeadlineExceeded
from fermix.events import turn_id
from fermix.tasks import Cancel, Deadline, Service, TaskGroup, ThreadPool, sleep, time_limit


def test_group_knows_what_runs_and_waits_for_it() -> None:
    group, done = TaskGroup("g"), []
    for number in range(3):
        group.start(lambda number=number: (sleep(0.01), done.append(number)))

    assert len(group) == 3
    assert not group.join(0.001)
    assert group.join(5)
    assert sorted(done) == [0, 1, 2] and len(group) == 0


def test_failed_task_is_logged_and_the_others_go_on(caplog) -> None:
    group, done = TaskGroup("g"), []
    failed = group.start(lambda: 1 / 0, name="bad")
    group.start(lambda: done.append(1))

    assert group.join(5)
    assert isinstance(failed.error, ZeroDivisionError)
    assert done == [1] and "Task g/bad failed" in caplog.text


def test_stopping_ends_tasks_and_runs_their_cleanup() -> None:
    group, cleaned = TaskGroup("g"), []

    def work() -> None:
        try:
            sleep(60)
        finally:
            cleaned.append(1)

    tasks = [group.start(work) for _ in range(3)]
    sleep(0)

    assert group.stop(5)
    assert all(task.is_done for task in tasks) and cleaned == [1, 1, 1]


def test_task_that_has_not_begun_is_stopped_too() -> None:
    group, ran = TaskGroup("g"), []
    task = group.start(lambda: ran.append(1))

    assert task.stop(5) and group.stop(5)
    assert ran == [] and len(group) == 0


def test_stubborn_task_is_reported_and_not_waited_for_beyond_the_time() -> None:
    group, is_over = TaskGroup("g"), []

    def work() -> None:
        while not is_over:
            try:
                sleep(0.01)
            except gevent.GreenletExit:
                continue

    group.start(work)
    sleep(0)

    assert not group.stop(0.05)
    assert len(group) == 1
    is_over.append(1)
    assert group.join(5)


def test_task_that_stops_its_own_group_ends_the_others_and_goes_on() -> None:
    group, done = TaskGroup("g"), []
    group.start(lambda: sleep(60))
    group.start(lambda: (group.stop(5), done.append(1)))

    assert group.join(5) and done == [1]


def test_task_works_for_the_turn_it_was_started_in() -> None:
    group, seen = TaskGroup("g"), []
    token = turn_id.set("turn-7")
    group.start(lambda: seen.append(turn_id.get()))
    turn_id.reset(token)
    group.join(5)

    assert seen == ["turn-7"] and turn_id.get() == "-"


def test_cancel_is_seen_by_all_and_the_first_reason_stays() -> None:
    cancel, called = Cancel(), []
    cancel.on_set(lambda: called.append("a"))
    forget = cancel.on_set(lambda: called.append("b"))
    forget()
    forget()
    assert not cancel.is_set() and not cancel.wait(0.001)
    cancel.check()

    cancel.set("by /stop")
    cancel.set("otherwise")

    assert called == ["a"] and cancel.reason == "by /stop" and cancel.wait(0)
    with pytest.raises(Cancelled, match="by /stop"):
        cancel.check()


def test_callback_on_a_set_cancel_is_called_at_once() -> None:
    cancel, called = Cancel(), []
    cancel.set("x")

    cancel.on_set(lambda: called.append(1))()

    assert called == [1]


def test_deadline_is_one_limit_for_many_waits() -> None:
    deadline = Deadline.after(0.02)
    assert 0 < deadline.remaining_s() <= 0.02 and not deadline.is_over()
    assert deadline.sooner(60) == deadline
    assert deadline.sooner(0).remaining_s() == 0.0
    deadline.check("it")
    sleep(0.03)

    assert deadline.is_over() and deadline.remaining_s() == 0.0
    with pytest.raises(DeadlineExceeded, match="the work ran out of time"):
        deadline.check("the work")


def test_time_limit_ends_the_block_and_names_it() -> None:
    with (
        pytest.raises(DeadlineExceeded, match="looking took longer"),
        time_limit(0.01, "looking"),
    ):
        sleep(60)
    with time_limit(0.01, "looking"):
        pass
    sleep(0.02)


def test_pool_runs_off_the_hub_and_gives_back_values_and_errors() -> None:
    pool = ThreadPool(2)

    def fail() -> None:
        raise KeyError("x")

    assert pool.run(threading.get_ident, timeout_s=5) != threading.get_ident()
    with pytest.raises(KeyError):
        pool.run(fail, timeout_s=5)
    pool.stop()


def test_pool_call_that_takes_too_long_is_given_up() -> None:
    pool = ThreadPool(1)

    with pytest.raises(DeadlineExceeded, match="Blocking work took longer"):
        pool.run(lambda: block_thread(0.3), timeout_s=0.05)
    assert pool.run(lambda: 5, timeout_s=5) == 5
    assert pool.stop()


def test_pool_is_stopped_in_time_though_a_call_does_not_end() -> None:
    pool = ThreadPool(1)
    with pytest.raises(DeadlineExceeded):
        pool.run(lambda: block_thread(0.5), timeout_s=0.01)

    assert not pool.stop(0.05)
    assert pool.stop(5.0)


def test_time_limit_around_a_pool_call_is_not_mistaken_for_its_own() -> None:
    pool = ThreadPool(1)

    with pytest.raises(DeadlineExceeded, match="the turn"), time_limit(0.05, "the turn"):
        pool.run(lambda: block_thread(0.2), timeout_s=5)
    pool.stop()


def test_service_is_there_until_it_is_stopped() -> None:
    stopped: list[float] = []
    service = Service(stopped.append)
    assert not service.wait(0.001)

    service.stop(3.0)

    assert service.wait(0) and stopped == [3.0]


def block_thread(seconds: float) -> None:
    """Hold the calling thread, as C that blocks does."""
    original_sleep = gevent.monkey.get_original("time", "sleep")
    original_sleep(seconds)
