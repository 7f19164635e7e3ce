"""Places that many want, while their number changes."""

from __future__ import annotations

from fermix.tasks import Slots, TaskGroup, sleep


class Guests:
    """Take a place each and keep it until they are sent away."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.inside: list[int] = []
        self.tasks = TaskGroup("guests")

    def come(self, *numbers: int) -> None:
        for number in numbers:
            self.tasks.start(lambda number=number: self._enter(number))
        sleep(0)

    def leave(self, number: int) -> None:
        self.inside.remove(number)
        self.slots.release()
        sleep(0)

    def _enter(self, number: int) -> None:
        if self.slots.acquire(10.0):
            self.inside.append(number)


def test_who_waits_longest_is_next() -> None:
    guests = Guests(Slots(1))

    guests.come(1, 2, 3)
    guests.leave(1)
    guests.come(4)

    assert guests.inside == [2]
    guests.leave(2)
    assert guests.inside == [3]


def test_more_places_let_the_waiting_in_at_once() -> None:
    slots = Slots(1)
    guests = Guests(slots)
    guests.come(1, 2, 3, 4)

    slots.resize(3)
    sleep(0)

    assert guests.inside == [1, 2, 3]


def test_fewer_places_count_once_the_taken_ones_are_given_back() -> None:
    slots = Slots(3)
    guests = Guests(slots)
    guests.come(1, 2, 3, 4)

    slots.resize(1)
    for number in (1, 2):
        guests.leave(number)

    assert guests.inside == [3]
    guests.leave(3)
    assert guests.inside == [4]


def test_who_gives_up_takes_no_place_with_it() -> None:
    slots = Slots(1)
    assert slots.acquire(0.1)

    assert not slots.acquire(0.01)
    slots.release()

    assert slots.acquire(0.01)


def test_place_given_to_one_that_is_ended_at_that_moment_goes_on_to_the_next() -> None:
    slots = Slots(1)
    guests = Guests(slots)
    slots.acquire(0.1)
    ended = guests.tasks.start(lambda: guests._enter(1))
    guests.come(2)

    slots.release()
    ended.stop(1.0)
    sleep(0)

    assert guests.inside in ([1], [2])
    assert len(guests.inside) == 1
