"""Order, limits and fairness of turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from gevent.event import Event

from fermix.errors import OwnerError, QueueFull
from fermix.gateway.queue import Queue
from fermix.messages import ConversationKey
from fermix.tasks import sleep
from tests.gateway.office import until

A, B, C = (ConversationKey("local", name) for name in "abc")


class Runs:
    """Turns that last until they are let go."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.gates: dict[str, Event] = {}
        self.is_held = True
        self.broken: set[str] = set()
        self.together = 0
        self.most_together = 0

    def __call__(self, entry_id: str) -> None:
        self.began.append(entry_id)
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        try:
            if self.is_held:
                self.gates.setdefault(entry_id, Event()).wait(10)
            else:
                sleep(0)
            if entry_id in self.broken:
                raise ValueError(entry_id)
            self.ended.append(entry_id)
        finally:
            self.together -= 1

    def let_go(self, entry_id: str) -> None:
        self.gates.setdefault(entry_id, Event()).set()


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def make_queue(runs: Runs) -> Iterator[Callable[..., Queue]]:
    made: list[Queue] = []

    def make(running: int = 4, waiting: int = 10) -> Queue:
        made.append(Queue(runs, running_turns=running, waiting_messages=waiting))
        return made[-1]

    yield make
    for queue in made:
        queue.stop(2.0)


def test_messages_of_one_conversation_run_one_after_the_other_in_order(make_queue, runs) -> None:
    queue = make_queue()
    runs.is_held = False
    for number in range(20):
        queue.offer(A, str(number))

    until("all to end", lambda: len(runs.ended) == 20)

    assert runs.ended == [str(number) for number in range(20)]
    assert runs.most_together == 1


def test_message_that_comes_as_the_turn_ends_is_not_lost(make_queue, runs) -> None:
    queue = make_queue()
    runs.is_held = False
    for number in range(200):
        queue.offer(A, str(number))
        sleep(0)  # by now the last one is anywhere between its beginning and its end

    until("all to end", lambda: len(runs.ended) == 200)
    assert runs.ended == [str(number) for number in range(200)]


def test_conversations_run_side_by_side_up_to_the_limit(make_queue, runs) -> None:
    queue = make_queue(running=2)
    for key, name in ((A, "a"), (B, "b"), (C, "c")):
        queue.offer(key, name)
    until("two to begin", lambda: len(runs.began) == 2)
    sleep(0.01)

    assert (runs.began, queue.running, queue.waiting) == (["a", "b"], 2, 1)
    runs.let_go("a")
    until("the third to begin", lambda: "c" in runs.began)


def test_busy_conversation_does_not_keep_others_from_their_turn(make_queue, runs) -> None:
    queue = make_queue(running=1)
    runs.is_held = False
    for number in range(10):
        queue.offer(A, f"a{number}")
    queue.offer(B, "b0")
    queue.offer(C, "c0")

    until("all to end", lambda: len(runs.ended) == 12)

    assert runs.ended.index("b0") <= 3 and runs.ended.index("c0") <= 4


def test_full_conversation_is_refused_with_the_way_out_and_others_are_not(make_queue, runs) -> None:
    queue = make_queue(waiting=2)
    queue.offer(A, "a0")
    until("it to begin", lambda: runs.began)
    queue.offer(A, "a1")
    queue.offer(A, "a2")

    with pytest.raises(QueueFull, match="2 messages are waiting in 'a'; at most 2 may") as refused:
        queue.check_room(A)
    assert "/stop" in refused.value.hint
    queue.check_room(B)


def test_withdrawn_message_does_not_run(make_queue, runs) -> None:
    queue = make_queue()
    for name in ("a0", "a1", "a2"):
        queue.offer(A, name)
    until("the first to begin", lambda: runs.began)

    assert queue.withdraw(A, "a1")
    assert not queue.withdraw(A, "a0") and not queue.withdraw(A, "a1") and not queue.withdraw(B, "x")
    runs.let_go("a0")
    runs.let_go("a2")
    until("the rest to end", lambda: runs.ended == ["a0", "a2"])


def test_only_message_of_a_conversation_can_be_withdrawn_while_it_waits_for_a_slot(
    make_queue, runs, caplog
) -> None:
    queue = make_queue(running=1)
    queue.offer(A, "a")
    until("it to begin", lambda: runs.began)
    queue.offer(B, "b")
    sleep(0.01)

    assert queue.withdraw(B, "b")
    runs.let_go("a")
    until("all to end", lambda: runs.ended == ["a"])
    sleep(0.01)

    queue.offer(B, "b2")
    runs.let_go("b2")
    until("the next one to run", lambda: runs.ended == ["a", "b2"])
    assert "failed" not in caplog.text


def test_turn_that_raises_loses_nothing_but_itself(make_queue, runs, caplog) -> None:
    queue = make_queue(running=1)
    runs.is_held = False
    runs.broken = {"a0"}
    for name in ("a0", "a1", "a2"):
        queue.offer(A, name)

    until("the others to end", lambda: runs.ended == ["a1", "a2"])

    assert queue.running == 0 and "a0" in caplog.text


def test_draining_waits_for_running_turns_and_begins_no_others(make_queue, runs) -> None:
    queue = make_queue(running=1)
    queue.offer(A, "a0")
    queue.offer(A, "a1")
    queue.offer(B, "b0")
    until("one to begin", lambda: runs.began)

    assert not queue.drain(0.05)
    runs.let_go("a0")
    assert queue.drain(5.0)
    sleep(0.01)
    assert (runs.began, runs.ended) == (["a0"], ["a0"])


def test_held_conversation_begins_nothing_until_it_is_let_go(make_queue, runs) -> None:
    queue = make_queue(running=1)
    queue.offer(A, "a0")
    until("the first to begin", lambda: runs.began == ["a0"])
    queue.offer(A, "a1")

    with queue.hold(A):
        assert queue.is_running(A)
        runs.let_go("a0")
        until("the first to end", lambda: not queue.is_running(A))
        queue.offer(A, "a2")
        queue.offer(B, "b0")  # others go on, and the held one takes no place from them
        runs.let_go("b0")
        until("the other conversation to be served", lambda: runs.ended == ["a0", "b0"])
        assert runs.began == ["a0", "b0"]

    runs.is_held = False
    until("what waited to be served", lambda: runs.ended == ["a0", "b0", "a1", "a2"])


def test_conversation_is_held_once(make_queue) -> None:
    queue = make_queue()
    with queue.hold(A), pytest.raises(OwnerError), queue.hold(A):
        pass
    with queue.hold(A):
        pass
