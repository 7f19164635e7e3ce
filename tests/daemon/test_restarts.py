"""When the next worker starts after deaths."""

from __future__ import annotations

from fermix.daemon.restarts import RestartPauses


def test_single_deaths_cost_nothing():
    pauses = RestartPauses(limit=3, window_s=60.0)

    assert [pauses.after_death(at * 30.0, was_ready=True) for at in range(20)] == [0.0] * 20


def test_many_deaths_in_the_window_make_growing_pauses_that_end_with_it():
    pauses = RestartPauses(limit=3, window_s=60.0)

    assert [pauses.after_death(float(at), was_ready=True) for at in range(6)] == [0, 0, 0, 0.5, 1.0, 2.0]
    assert pauses.after_death(100.0, was_ready=True) == 0


def test_workers_that_never_become_ready_are_slowed_down_up_to_a_minute():
    pauses = RestartPauses(limit=1000, window_s=60.0)

    waits = [pauses.after_death(at * 100.0, was_ready=False) for at in range(12)]

    assert waits == [0, 0, 0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert pauses.after_death(1300.0, was_ready=True) == 0
