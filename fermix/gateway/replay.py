"""The events of a turn that ended in an earlier life, made again from its rows."""

from __future__ import annotations

from fermix.conversations import ConversationStore
from fermix.db import Connection, Database
from fermix.errors import UsageError
from fermix.gateway.inbox import Inbox
from fermix.gateway.publish import done, publish_steps
from fermix.gateway.tables import OutboxRow
from fermix.gateway.watch import TurnLog
from fermix.secrets import Redactor


class Replay:
    """Reads turns back; nothing is run."""

    def __init__(
        self,
        db: Database,
        *,
        inbox: Inbox,
        conversations: ConversationStore,
        redactor: Redactor | None = None,
    ) -> None:
        self._db = db
        self._inbox = inbox
        self._conversations = conversations
        self._redactor = redactor

    def log_of(self, turn_id: str, after_seq: int) -> TurnLog:
        """The ended turn as a log whose every event is numbered above `after_seq`.

        Raises: UsageError when no such turn has ended.
        """
        record = self._inbox.turn(turn_id)
        if record is None or record.state == "running":
            raise UsageError(f"No turn {turn_id[:40]!r} has ended.")
        log = TurnLog(turn_id, self._redactor)
        log.start_life(record.attempt + 1)
        log.start_after(after_seq)
        log.publish("restarted")
        publish_steps(log, self._conversations.of_turn(turn_id))
        text, cost = self._text_of(turn_id), record.cost_micro_usd
        log.publish("done", **done(record.state, text, record.usage, record.error, cost_micro_usd=cost))
        return log

    def _text_of(self, turn_id: str) -> str:
        def work(connection: Connection) -> str:
            rows = OutboxRow.select().where(OutboxRow.turn_id == turn_id).order_by(OutboxRow.position)
            return "".join(row.body for row in rows)

        return self._db.read(work)
