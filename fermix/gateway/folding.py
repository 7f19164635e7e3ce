"""Folds what was said meanwhile into the running turn, each with the end of its own turn in one commit."""

from __future__ import annotations

from collections.abc import Callable

from fermix import events
from fermix.agent.events import TurnEnded, TurnStatus
from fermix.channels.port import Chunk
from fermix.conversations import ConversationStore, Histories
from fermix.db import Connection, Database
from fermix.gateway.inbox import EntryDropped, Inbox, InboxEntry
from fermix.gateway.outbox import Outbox
from fermix.gateway.publish import publish
from fermix.gateway.steering import TAKEN_UP, Steering, without_command
from fermix.gateway.turn import RunningTurn, durably
from fermix.gateway.watch import Watch
from fermix.messages import Usage, UserMessage
from fermix.usage import Spent


class Folding:
    """Takes up at each step of a turn what steering gives for it."""

    def __init__(
        self,
        *,
        db: Database,
        inbox: Inbox,
        outbox: Outbox,
        conversations: ConversationStore,
        histories: Histories,
        watch: Watch,
        words_of: Callable[[InboxEntry], UserMessage],
        drop: Callable[[str], None],
    ) -> None:
        """`words_of` gives what the model is told of a message; `drop` ends the turn of a deleted one."""
        self.steering: Steering | None = None
        """None until there is a queue to take from."""
        self._db = db
        self._inbox = inbox
        self._outbox = outbox
        self._conversations = conversations
        self._histories = histories
        self._watch = watch
        self._words_of = words_of
        self._drop = drop

    def fold(self, turn: RunningTurn) -> list[UserMessage]:
        """What the running turn takes up now; a message that cannot be stored waits on.

        Raises: StoreError, StoreClosed.
        """
        if (steering := self.steering) is None:
            return []
        folded: list[UserMessage] = []
        waiting = steering.take(turn.entry)
        while waiting:
            entry, is_stored = without_command(waiting[0]), False
            try:
                words, chunks = self._store(turn, entry)
                is_stored = True
                self._tell(turn, entry, words, chunks)
                folded.append(words)
            except EntryDropped:
                self._drop(entry.turn_id)
            except BaseException:
                for left in waiting[is_stored:]:
                    steering.give_back(left)
                raise
            del waiting[0]
        return folded

    def _store(self, turn: RunningTurn, entry: InboxEntry) -> tuple[UserMessage, list[Chunk]]:
        words = self._words_of(entry)
        log = self._watch.log_of(entry.turn_id)

        def work(connection: Connection) -> list[Chunk]:
            life = self._inbox.begin(connection, entry, "", provider="", model="")
            self._conversations.append(connection, turn.conversation_id, turn.entry.turn_id, [words])
            self._inbox.end(connection, entry, TurnStatus.COMPLETED.value, Spent(), None)
            log.start_life(life)
            return self._outbox.put(connection, entry.turn_id, entry.key, TAKEN_UP)

        return words, durably(self._db, turn, work)

    def _tell(self, turn: RunningTurn, entry: InboxEntry, words: UserMessage, chunks: list[Chunk]) -> None:
        self._histories.extend(turn.conversation_id, [words])
        publish(self._watch.log_of(entry.turn_id), TurnEnded(TurnStatus.COMPLETED, TAKEN_UP, Usage()))
        self._watch.close(entry.turn_id)
        self._outbox.send(chunks)
        turn.log.publish("notice", text="Taken up: what was said meanwhile.")
        events.emit("inbox.folded", turn_id=turn.entry.turn_id, inbox_id=entry.id)
