"""One turn at a time per conversation, in order; conversations side by side up to a limit."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gevent.event import Event

from fermix.errors import QueueFull, SessionBusy
from fermix.messages import ConversationKey
from fermix.tasks import Deadline, Slots, TaskGroup, sleep

log = logging.getLogger(__name__)

SLOT_WAIT_S = 3600.0


class Queue:
    """Hands inbox entries to `run`, FIFO per key; only ids wait here, the rest is in the inbox."""

    def __init__(self, run: Callable[[str], None], *, running_turns: int, waiting_messages: int) -> None:
        self._run = run
        self._slots = Slots(running_turns)
        self._most_waiting = waiting_messages
        self._waiting: dict[ConversationKey, deque[str]] = {}
        self._busy: set[ConversationKey] = set()
        self._held: dict[ConversationKey, Event] = {}
        self._tasks = TaskGroup("turns")
        self._is_open = True
        self.running = 0

    @property
    def waiting(self) -> int:
        """Messages whose turn has not begun."""
        return sum(map(len, self._waiting.values()))

    def waiting_of(self, key: ConversationKey) -> int:
        """Messages of one conversation whose turn has not begun."""
        return len(self._waiting.get(key, ()))

    def limit(self, *, running_turns: int, waiting_messages: int) -> None:
        """Go by these limits from now on; what runs and waits already stays."""
        self._slots.resize(running_turns)
        self._most_waiting = waiting_messages

    def check_room(self, key: ConversationKey) -> None:
        """Raises: QueueFull when the conversation has its fill of waiting messages."""
        count = self.waiting_of(key)
        if count >= self._most_waiting:
            raise QueueFull(
                f"{count} messages are waiting in {key.chat_id!r}; at most {self._most_waiting} may.",
                hint="Wait for the answers, or stop the running one with: /stop",
            )

    def offer(self, key: ConversationKey, entry_id: str) -> None:
        """Run the entry's turn when all earlier ones of its key have ended."""
        lane = self._waiting.get(key)
        if lane is None:
            lane = self._waiting[key] = deque()
            self._tasks.start(lambda: self._serve(key), name=key.chat_id)
        lane.append(entry_id)

    def withdraw(self, key: ConversationKey, entry_id: str) -> bool:
        """Take a waiting entry out again; False when its turn has begun or it is not here."""
        lane = self._waiting.get(key)
        if lane is None or entry_id not in lane:
            return False
        lane.remove(entry_id)
        return True

    def is_running(self, key: ConversationKey) -> bool:
        """Whether a turn of this conversation was begun and has not ended."""
        return key in self._busy

    @contextmanager
    def hold(self, key: ConversationKey) -> Iterator[None]:
        """Begin no turn of this conversation meanwhile; what arrives waits.

        Raises: SessionBusy when somebody holds it already.
        """
        if key in self._held:
            raise SessionBusy(f"The session {key.chat_id!r} is being deleted already.")
        released = self._held[key] = Event()
        try:
            yield
        finally:
            del self._held[key]
            released.set()

    def close(self) -> None:
        """Begin no more turns; what waits stays in the inbox."""
        self._is_open = False

    def drain(self, timeout_s: float) -> bool:
        """Whether all running turns ended by themselves in time."""
        self.close()
        deadline = Deadline.after(timeout_s)
        while self.running and not deadline.is_over():
            sleep(0.02)
        return not self.running

    def stop(self, timeout_s: float) -> None:
        """End every task of the queue."""
        self.close()
        self._tasks.stop(timeout_s)

    def _serve(self, key: ConversationKey) -> None:
        lane = self._waiting[key]
        try:
            while lane and self._is_open:
                if (released := self._held.get(key)) is not None:
                    released.wait(SLOT_WAIT_S)
                    continue
                if not self._slots.acquire(SLOT_WAIT_S):
                    continue
                try:
                    # what waited may be withdrawn or held by now
                    if self._is_open and lane and key not in self._held:
                        self._run_one(key, lane.popleft())
                finally:
                    self._slots.release()
                sleep(0)  # a lane that waits longer gets the slot before our next one
        finally:
            del self._waiting[key]

    def _run_one(self, key: ConversationKey, entry_id: str) -> None:
        self.running += 1
        self._busy.add(key)
        try:
            self._run(entry_id)
        except Exception:
            # The boundary of a lane: what was to follow must not be lost with this one.
            log.exception("The turn of %s could not be run", entry_id)
        finally:
            self._busy.discard(key)
            self.running -= 1
