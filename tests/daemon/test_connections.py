"""A listener's connections while their number changes."""

from __future__ import annotations

from gevent.event import Event

from fermix.daemon.connections import Connections
from fermix.tasks import sleep


def hold(connections: Connections, count: int) -> list[Event]:
    ends = [Event() for _ in range(count)]
    for end in ends:
        connections.spawn(end.wait, 10)
    sleep(0)
    return ends


def test_larger_size_lets_more_in_and_wakes_the_server_that_waits() -> None:
    connections = Connections(2)
    hold(connections, 2)
    woken = Event()
    connections._semaphore.rawlink(lambda _: woken.set())
    assert connections.full()

    connections.resize(3)

    assert woken.wait(1.0)
    assert not connections.full()
    hold(connections, 1)
    assert connections.full()


def test_smaller_size_counts_once_connections_have_ended() -> None:
    connections = Connections(3)
    ends = hold(connections, 3)

    connections.resize(1)
    for end in ends[:2]:
        end.set()
        sleep(0.01)
        assert connections.full()
    ends[2].set()
    sleep(0.01)

    assert not connections.full()
    assert connections._semaphore.counter == 1


def test_sizes_may_follow_each_other_while_all_is_taken() -> None:
    connections = Connections(3)
    ends = hold(connections, 3)

    for size in (1, 2, 5, 1, 4):
        connections.resize(size)
    for end in ends:
        end.set()
    sleep(0.01)

    assert connections._semaphore.counter == 4
