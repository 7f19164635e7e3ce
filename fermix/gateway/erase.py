"""Deletes a conversation for good: its messages, what waits in it, and every copy of its words.

What arrives while it is deleted begins a fresh conversation.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec

from fermix import events
from fermix.conversations.results import owner_of
from fermix.db import Connection, Database
from fermix.errors import OwnerError, SessionBusy, StoreClosed, StoreError
from fermix.gateway.inbox import Inbox
from fermix.gateway.queue import Queue
from fermix.gateway.turns import Turns
from fermix.ids import new_id
from fermix.messages import ConversationKey
from fermix.tasks import Deadline, TaskGroup, sleep

log = logging.getLogger(__name__)

DELETED = "(deleted)"
"""What stands in the inbox instead of the conversation's name; the bare rows keep duplicates out."""
STOP_TIMEOUT_S = 20.0
ERASE_TIMEOUT_S = 120.0
"""The parts of it give up earlier."""
LOOK_S = 0.02
WIPE_PAUSE_S = 0.5
LONGEST_WIPE_PAUSE_S = 30.0
REASON = "because its session was deleted"


class Files(Protocol):
    """Who keeps the files that came with messages, and the list of what is still to be removed."""

    def forget_typed(self, digests: Collection[bytes]) -> None:
        """Take texts of these digests (`digest_of`) out of what people typed at a prompt."""
        ...

    def intend(self, removal_id: str, witness_id: str, paths: Iterable[str]) -> None:
        """Write down, durably, that these files go once the inbox row `witness_id` is deleted."""
        ...

    def carry_out(self, removal_id: str) -> None:
        """Remove the files; those that cannot be removed now stay on the list."""
        ...

    def finish(self, removal_id: str) -> None:
        """Forget the list, unless files are still on it."""
        ...

    def give_up(self, removal_id: str) -> None:
        """Forget the list and leave its files."""
        ...

    def waiting(self) -> list[tuple[str, str]]:
        """Removal and witness of every list that an earlier life left."""
        ...


@dataclass(frozen=True, slots=True)
class Erased:
    """What was deleted."""

    messages: int
    files: int


@dataclass(slots=True)
class _Found:
    """The rows that go."""

    conversation_id: str = ""
    entry_ids: list[str] = field(default_factory=list)
    turn_ids: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    typed: set[bytes] = field(default_factory=set)
    """Digests of what people said; a big conversation's words would fill the memory."""


class Eraser:
    """Deletes conversations, one after the other or side by side."""

    def __init__(
        self,
        db: Database,
        *,
        queue: Queue,
        turns: Turns,
        inbox: Inbox,
        files: Files,
        now_ms: Callable[[], int],
    ) -> None:
        self._db = db
        self._queue = queue
        self._turns = turns
        self._inbox = inbox
        self._files = files
        self._now_ms = now_ms
        self._tasks = TaskGroup("erase")

    def erase(self, key: ConversationKey) -> Erased | None:
        """Delete what `key` holds now; None when it holds nothing.

        A turn that runs is stopped, what waits is dropped, all rows go in one durable commit.
        Contract: goes on to its end once it has begun, also when whoever asked is gone.
        Raises: SessionBusy when a running turn does not let go, OwnerError, StoreError; then nothing is
        deleted.
        """
        outcome: list[Erased | OwnerError | None] = []

        def work() -> None:
            try:
                outcome.append(self._erase(key))
            except OwnerError as error:
                outcome.append(error)

        self._tasks.start(work, name="erase").join(ERASE_TIMEOUT_S)
        if not outcome:
            raise StoreError("The session could not be deleted; the log says why.", hint="fermix logs")
        if isinstance(outcome[0], OwnerError):
            raise outcome[0]
        return outcome[0]

    def _erase(self, key: ConversationKey) -> Erased | None:
        removal_id = new_id(self._now_ms())
        with self._queue.hold(key):
            last_row = self._db.read(lambda connection: _number(connection, _LAST_ROW))
            self._stop(key)
            found = self._db.read(lambda connection: _find(connection, key, last_row))
            if not found.conversation_id and not found.entry_ids:
                return None
            self._files.forget_typed(found.typed)
            self._files.intend(removal_id, next(iter(found.entry_ids), ""), found.files)
            events.emit("erase.intended")
            try:
                count = self._db.write(
                    lambda connection: self._delete(connection, key, last_row), durable=True
                )
            finally:
                # Also after a write that was given up, which may be committed all the same.
                self._turns.forget(key, found.conversation_id)
                self._inbox.forget(found.entry_ids)
            for entry_id, turn_id in zip(found.entry_ids, found.turn_ids, strict=True):
                self._queue.withdraw(key, entry_id)
                self._turns.drop(turn_id)
        log.info("Deleted a session: %d messages, %d files", count, len(found.files))
        events.emit("erase.committed")
        self._files.carry_out(removal_id)
        events.emit("erase.removed")
        if self._db.wipe():
            events.emit("erase.wiped")
            self._files.finish(removal_id)
        else:
            self._tasks.start(lambda: self._insist([removal_id]), name="wipe")
        return Erased(count, len(found.files))

    def recover(self) -> None:
        """Do what an earlier life was killed before: remove files, wipe words that are deleted."""
        removal_ids = []
        for removal_id, witness_id in self._files.waiting():
            if self._db.read(partial(_number, query=_IS_LEFT, values=(witness_id,))):
                self._files.give_up(removal_id)  # killed before the commit: the session is all there
            else:
                removal_ids.append(removal_id)
        if removal_ids:
            self._tasks.start(lambda: self._insist(removal_ids), name="wipe")

    def stop(self, timeout_s: float) -> None:
        """End what still goes on."""
        self._tasks.stop(timeout_s)

    def _stop(self, key: ConversationKey) -> None:
        deadline = Deadline.after(STOP_TIMEOUT_S)
        while self._queue.is_running(key):
            # Again each time: a turn that was just begun may not be known to be running yet.
            self._turns.cancel(key, REASON)
            if deadline.is_over():
                raise SessionBusy(
                    f"A running turn of {key.chat_id!r} did not stop within {STOP_TIMEOUT_S:g} s; "
                    "nothing was deleted.",
                    hint="fermix status",
                )
            sleep(LOOK_S)

    def _delete(self, connection: Connection, key: ConversationKey, last_row: int) -> int:
        run = connection.native.execute
        where = (key.channel, key.chat_id, key.thread)
        run(_DELETE_REPLIES, (*where, last_row))
        run(_EMPTY_ENTRIES, (DELETED, DELETED, self._now_ms(), *where, last_row))
        run(_DELETE_SUMMARIES, where)
        run(_DELETE_RESULTS, (owner_of(key),))
        count = run(_DELETE_MESSAGES, where).rowcount
        run(_DELETE_CONVERSATION, where)
        return int(count)

    def _insist(self, removal_ids: list[str]) -> None:
        """Until nobody reads the old log and the disk has room; the lists outlive this life."""
        pause_s = WIPE_PAUSE_S
        try:
            for removal_id in removal_ids:
                self._files.carry_out(removal_id)
            while not self._db.wipe():
                sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_WIPE_PAUSE_S)
            for removal_id in removal_ids:
                self._files.finish(removal_id)
        except StoreClosed:
            pass


_LAST_ROW = "SELECT coalesce(max(rowid), 0) FROM inbox"
_IS_LEFT = f"SELECT count(*) FROM inbox WHERE id = ? AND chat_id <> '{DELETED}'"
_WHERE = "channel = ? AND chat_id = ? AND thread = ?"
_CONVERSATION = f"SELECT id FROM conversations WHERE {_WHERE}"
_ENTRIES = f"""
    SELECT id, turn_id, json_extract(body, '$.text'),
        iif(json_array_length(body, '$.attachments'), body, NULL)
    FROM inbox
    WHERE {_WHERE} AND rowid <= ? ORDER BY rowid
"""
_FILES_OF_OTHERS = f"""
    SELECT json_extract(file.value, '$.path') FROM inbox, json_each(inbox.body, '$.attachments') AS file
    WHERE NOT ({_WHERE} AND inbox.rowid <= ?)
"""
_DELETE_REPLIES = f"""
    DELETE FROM outbox WHERE turn_id IN (SELECT turn_id FROM inbox WHERE {_WHERE} AND rowid <= ?)
"""
_EMPTY_ENTRIES = f"""
    UPDATE inbox SET chat_id = ?, updated_ms = ?3,
        body = json_set(body, '$.text', '', '$.attachments', json('[]'), '$.cwd', NULL,
            '$.key.chat_id', ?2),
        state = iif(state IN ('committed', 'failed'), state, 'dropped')
    WHERE {_WHERE} AND rowid <= ?
"""
_DELETE_MESSAGES = f"DELETE FROM messages WHERE conversation_id IN ({_CONVERSATION})"
_DELETE_SUMMARIES = f"DELETE FROM summaries WHERE conversation_id IN ({_CONVERSATION})"
_DELETE_RESULTS = "DELETE FROM tool_results WHERE owner = ?"
_DELETE_CONVERSATION = f"DELETE FROM conversations WHERE {_WHERE}"


class _Files(msgspec.Struct):
    path: str


class _Body(msgspec.Struct):
    attachments: list[_Files] = []


def _find(connection: Connection, key: ConversationKey, last_row: int) -> _Found:
    where = (key.channel, key.chat_id, key.thread)
    row = connection.native.execute(_CONVERSATION, where).fetchone()
    found = _Found(conversation_id="" if row is None else row[0])
    for entry_id, turn_id, text, body in connection.native.execute(_ENTRIES, (*where, last_row)):
        found.entry_ids.append(entry_id)
        found.turn_ids.append(turn_id)
        if text and text.strip():
            found.typed.add(digest_of(text))
        if body is not None:
            found.files += [each.path for each in msgspec.json.decode(body, type=_Body).attachments]
    if found.files:  # one upload may have been sent in several sessions
        rows = connection.native.execute(_FILES_OF_OTHERS, (*where, last_row))
        shared = {path for (path,) in rows} & {*found.files}
        found.files = [path for path in dict.fromkeys(found.files) if path not in shared]
    return found


def digest_of(text: str) -> bytes:
    """Tells whether two texts say the same, blanks around them aside."""
    return hashlib.blake2b(text.strip().encode(errors="replace"), digest_size=16).digest()


def _number(connection: Connection, query: str, values: tuple[object, ...] = ()) -> int:
    return int(connection.native.execute(query, values).fetchone()[0])
