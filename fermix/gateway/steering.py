"""Messages that are folded into the turn that runs: by `/steer`, or all of them where the setting says so.

Each waits in the queue like any other: one that the running turn does not take up gets its own turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from fermix.gateway.inbox import InboxEntry
from fermix.gateway.queue import Queue

COMMAND = "/steer"
WAITS_FOR_STEP = "The answer on its way takes it up at its next step; /stop would end it now."
TAKEN_UP = "Taken up by the answer that is on its way."


def words_of(text: str) -> str | None:
    """What `/steer TEXT` says; None for every other text, and for `/steer` alone."""
    if text[: len(COMMAND)].lower() != COMMAND:
        return None
    rest = text[len(COMMAND) :]
    return rest.strip() or None if rest[:1].isspace() else None


def without_command(entry: InboxEntry) -> InboxEntry:
    """The entry as if its sender had said only the words behind `/steer`."""
    words = words_of(entry.inbound.text)
    if words is None:
        return entry
    return replace(entry, inbound=msgspec.structs.replace(entry.inbound, text=words))


class Steering:
    """Knows which waiting messages may be folded into the running turn of their conversation."""

    def __init__(self, queue: Queue, *, takes_all: Callable[[], bool]) -> None:
        """`takes_all` says whether every message may be, or only those that ask for it."""
        self._queue = queue
        self._takes_all = takes_all
        self._waiting: dict[str, InboxEntry] = {}

    def offer(self, entry: InboxEntry) -> bool:
        """A message that is put into the queue; whether there is a turn that may take it up."""
        asks, is_running = words_of(entry.inbound.text) is not None, self._queue.is_running(entry.key)
        if asks or (self._takes_all() and is_running):
            self._waiting[entry.id] = entry
            return is_running
        return False

    def began(self, entry_id: str) -> None:
        """It got a turn of its own."""
        self._waiting.pop(entry_id, None)

    def take(self, running: InboxEntry) -> list[InboxEntry]:
        """Those for this turn, out of the queue now: of no other standing and for no other model."""
        if not self._waiting:
            return []
        fitting = [
            entry
            for entry in self._waiting.values()
            if entry.key == running.key
            and entry.standing == running.standing
            and entry.inbound.pin in (None, running.inbound.pin)
        ]
        return [entry for entry in fitting if self._out(entry)]

    def give_back(self, entry: InboxEntry) -> None:
        """It could not be folded after all: a turn of its own."""
        self._queue.offer(entry.key, entry.id)

    def _out(self, entry: InboxEntry) -> bool:
        self._waiting.pop(entry.id, None)
        return self._queue.withdraw(entry.key, entry.id)
