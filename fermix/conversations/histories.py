"""The latest messages of the conversations in use, in memory, within a fixed amount of it.

The store is the truth. Nothing is lost when a conversation leaves the cache, also in the middle of
a turn: the next `get` loads it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import getsizeof

from fermix.conversations.store import ConversationStore
from fermix.conversations.summaries import Summary
from fermix.messages import AssistantMessage, ChatMessage, ToolMessage

_LOAD_ATTEMPTS = 5


@dataclass(slots=True)
class _History:
    messages: list[ChatMessage] = field(default_factory=list)
    size_bytes: int = 0
    pinned: int = 0
    """How many messages at the beginning are those of a summary, which stay."""
    summary: Summary | None = None

    def add(self, messages: Iterable[ChatMessage]) -> None:
        for message in messages:
            self.messages.append(message)
            self.size_bytes += _size(message)


@dataclass(slots=True, eq=False)
class _Load:
    is_stale: bool = False
    """Whether the conversation changed after the load began."""


class Histories:
    """A least-recently-used cache of message lists by conversation."""

    def __init__(
        self,
        store: ConversationStore,
        *,
        conversations: int = 256,
        messages: int = 200,
        size_bytes: int = 16_000_000,
    ) -> None:
        """At most `conversations` lists, of about `messages` each, with about `size_bytes` in all."""
        self._store = store
        self._conversations = conversations
        self._messages = messages
        self._limit_bytes = size_bytes
        self._held = 0
        self._entries: OrderedDict[str, _History] = OrderedDict()
        self._loads: dict[str, set[_Load]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, conversation_id: str) -> list[ChatMessage]:
        """A copy of the latest messages, oldest first; never begins with a tool's result."""
        history = self._entries.get(conversation_id)
        if history is None:
            history = self._load(conversation_id)
        else:
            self._entries.move_to_end(conversation_id)
        return list(history.messages)

    def summary_of(self, conversation_id: str) -> Summary | None:
        """The summary that the messages `get` has just given begin with; None when they are all there."""
        history = self._entries.get(conversation_id)
        return None if history is None else history.summary

    def begin(self, conversation_id: str, messages: Iterable[ChatMessage]) -> None:
        """Hold a conversation from its very first messages on, which need no loading."""
        self._spoil_loads(conversation_id)
        self._drop(conversation_id)
        history = self._entries[conversation_id] = _History()
        history.add(messages)
        self._held += history.size_bytes
        self._evict()

    def extend(self, conversation_id: str, messages: Iterable[ChatMessage]) -> None:
        """Add what has just been committed; a conversation that is not held stays so.

        Contract: called once per message by the one turn of the conversation, after the commit.
        """
        self._spoil_loads(conversation_id)
        history = self._entries.get(conversation_id)
        if history is None:
            return
        self._entries.move_to_end(conversation_id)
        before = history.size_bytes
        history.add(messages)
        self._shorten(history)
        self._held += history.size_bytes - before
        self._evict()

    def sum_up(self, conversation_id: str, summary: Summary, kept: int) -> None:
        """Show a summary, whose storing was committed, instead of all but the last `kept` messages."""
        self._spoil_loads(conversation_id)
        history = self._entries.get(conversation_id)
        if history is None:
            return
        tail = history.messages[max(0, len(history.messages) - kept) :]
        self._held -= history.size_bytes
        made = self._entries[conversation_id] = _begun(summary)
        made.add(tail)
        self._held += made.size_bytes
        self._evict()

    def hold(self, messages: int) -> None:
        """Hold about `messages` of each conversation from now on."""
        if messages == self._messages:
            return
        self._messages = messages
        for conversation_id in {*self._entries, *self._loads}:
            self.forget(conversation_id)

    def forget(self, conversation_id: str) -> None:
        """Drop what is held, as when messages were removed from the store."""
        self._spoil_loads(conversation_id)
        self._drop(conversation_id)

    def _drop(self, conversation_id: str) -> None:
        history = self._entries.pop(conversation_id, None)
        if history is not None:
            self._held -= history.size_bytes

    def _load(self, conversation_id: str) -> _History:
        """From the store; again when the conversation changed meanwhile, so that no message is missed."""
        for _ in range(_LOAD_ATTEMPTS):
            load = _Load()
            loads = self._loads.setdefault(conversation_id, set())
            loads.add(load)
            try:
                summary, stored = self._store.recent(conversation_id, self._messages)
            finally:
                loads.discard(load)
                if not loads:
                    self._loads.pop(conversation_id, None)
            history = _begun(summary)
            history.add(one.message for one in stored)
            if load.is_stale:
                continue
            self._drop(conversation_id)
            self._entries[conversation_id] = history
            self._held += history.size_bytes
            self._evict()
            return history
        # Changing all the time: right as of this moment, so it is used and not kept.
        return history

    def _spoil_loads(self, conversation_id: str) -> None:
        for load in self._loads.get(conversation_id, ()):
            load.is_stale = True

    def _shorten(self, history: _History) -> None:
        """Cut the oldest, seldom and much: a beginning that stays lets providers reuse their caches."""
        first = history.pinned
        excess = len(history.messages) - first - self._messages
        if excess <= self._messages // 4:
            return
        end = first + excess
        while end > first and isinstance(history.messages[end], ToolMessage):
            end -= 1
        history.size_bytes -= sum(_size(message) for message in history.messages[first:end])
        del history.messages[first:end]

    def _evict(self) -> None:
        while self._entries and (
            len(self._entries) > self._conversations or self._held > self._limit_bytes
        ):
            _, history = self._entries.popitem(last=False)
            self._held -= history.size_bytes


def _begun(summary: Summary | None) -> _History:
    """A history that begins with what a model is shown of the summary."""
    history = _History()
    if summary is not None:
        history.add(summary.shown())
        history.pinned, history.summary = len(history.messages), summary
    return history


def _size(message: ChatMessage) -> int:
    """About how many bytes of memory it takes; a text with rare signs takes four for each character."""
    size = 100 + getsizeof(message.text)
    if isinstance(message, AssistantMessage):
        size += getsizeof(message.reasoning)
        size += sum(getsizeof(str(call.arguments)) for call in message.tool_calls)
    return size
