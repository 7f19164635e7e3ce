"""A turn on its way, and how what becomes of it is made durable."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fermix.db import Connection, Database
from fermix.errors import StoreBusy, StoreFailing, StoreFull
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.watch import TurnLog
from fermix.messages import ModelCall
from fermix.tasks import Cancel, sleep

log = logging.getLogger(__name__)

LONGEST_PAUSE_S = 30.0

Result = TypeVar("Result")


@dataclass(slots=True)
class RunningTurn:
    """A turn on its way."""

    entry: InboxEntry
    cancel: Cancel
    log: TurnLog
    conversation_id: str = ""
    life: int = 0
    said: str = ""
    """What the model has said since its last whole reply."""
    has_asked_for_tools: bool = False
    """In this life; before, there can be no call to close."""
    decisions: list[str] = field(default_factory=list)
    """What its phases decided, the first of them, stored with its end."""
    calls: list[ModelCall] = field(default_factory=list)
    """What models were asked since the last commit, which the next one puts on the bill."""


def durably(db: Database, turn: RunningTurn, work: Callable[[Connection], Result]) -> Result:
    """Commit, waiting while the disk is full or fails or another process holds the database.

    What was accepted is not dropped for that. Raises: StoreError, StoreClosed.
    """
    pause_s = 1.0
    while True:
        try:
            return db.write(work, durable=True)
        except (StoreFull, StoreBusy, StoreFailing) as failure:
            log.error("Turn %s waits: %s", turn.entry.turn_id, failure)
            turn.log.publish("notice", text=f"{failure} This answer waits for it.")
            sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
