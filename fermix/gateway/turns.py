"""Runs turns: begins them durably, drives the agent, stores each step, hands the reply to the outbox.

A turn resumes after its last stored step; a tool call that was open is closed as
interrupted and never run again.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

from gevent import GreenletExit

from fermix import events
from fermix.agent.events import (
    Called,
    Compacted,
    Corrected,
    Notice,
    PhaseChanged,
    Replied,
    Restarted,
    TextDelta,
    ToolReplied,
    TurnEnded,
    TurnStatus,
)
from fermix.agent.loop import Agent
from fermix.agent.thinking import Thinking
from fermix.capabilities.context import ToolContext
from fermix.channels.port import Chunk
from fermix.clock import Clock
from fermix.conversations import ConversationStore, Histories
from fermix.db import Connection, Database
from fermix.errors import Cancelled, StoreClosed, StoreError
from fermix.gateway.folding import Folding
from fermix.gateway.inbox import EntryDropped, Inbox, InboxEntry
from fermix.gateway.note import FindPictures, words_of
from fermix.gateway.outbox import Outbox
from fermix.gateway.publish import ProgressLine, done, publish, publish_steps
from fermix.gateway.steering import Steering, without_command
from fermix.gateway.turn import RunningTurn, durably
from fermix.gateway.watch import Watch
from fermix.messages import (
    AssistantMessage,
    ChatMessage,
    ConversationKey,
    ModelCall,
    Pin,
    ToolMessage,
    Usage,
    UserMessage,
)
from fermix.providers.port import Provider
from fermix.tasks import Cancel, Deadline
from fermix.usage import Ledger, Spent, record_within, spent_within

log = logging.getLogger(__name__)

HANDED_BACK = "the daemon is stopping"
TRIES = 2
KNOWN_CONVERSATIONS = 1024
INTERRUPTED = (
    "Interrupted: fermix stopped while this ran. Whether it had an effect is unknown; it was not run again."
)
POISON = (
    "fermix stopped twice while working on this message, so it was not tried a third time. "
    "Send it again, perhaps in smaller steps; the log says what happened: fermix logs"
)

MOST_DECISIONS = 200
QUOTING = frozenset({"steps_used_up", "time_used_up", "budget_used_up", "tool_repeated"})
"""Ends whose words are the model's or a tool's: contents, which the log does not hold."""
DROPPED = "Stopped: its session was deleted."
BROKEN = "Something broke inside fermix while it worked on this. The log says what: fermix logs"

Result = TypeVar("Result")
MakeContext = Callable[[InboxEntry, Cancel, Deadline, Callable[[str], None]], ToolContext]


class Turns:
    """All turns that run now."""

    def __init__(
        self,
        *,
        db: Database,
        inbox: Inbox,
        outbox: Outbox,
        conversations: ConversationStore,
        histories: Histories,
        watch: Watch,
        ledger: Ledger,
        find_pictures: FindPictures,
        agents: Callable[[Pin | None], AbstractContextManager[Agent]],
        make_context: MakeContext,
        clock: Clock,
        redact: Callable[[str], str],
        turn_timeout_s: Callable[[], float],
    ) -> None:
        """`agents` lends the agent of one turn, with the model its message asks for.

        `turn_timeout_s` is asked when a turn begins.
        `find_pictures` says which of some files can be shown to a model.
        """
        self._db = db
        self._inbox = inbox
        self._outbox = outbox
        self._conversations = conversations
        self._histories = histories
        self._watch = watch
        self._ledger = ledger
        self._find_pictures = find_pictures
        self._agents = agents
        self._make_context = make_context
        self._clock = clock
        self._redact = redact
        self._timeout_s = turn_timeout_s
        self._running: dict[str, RunningTurn] = {}
        self._wanting_room: set[ConversationKey] = set()
        self._untold: dict[ConversationKey, str] = {}
        """What came up behind the last answer, by conversation; the next turn tells it."""
        self._folding = Folding(
            db=db,
            inbox=inbox,
            outbox=outbox,
            conversations=conversations,
            histories=histories,
            watch=watch,
            words_of=self._words_of,
            drop=self.drop,
        )
        self._conversation_ids: OrderedDict[ConversationKey, str] = OrderedDict()

    def steered_by(self, steering: Steering) -> None:
        """Take up at each step what this one gives."""
        self._folding.steering = steering

    def run(self, entry_id: str) -> None:
        """Answer one inbox entry; returns when its end is stored or it was handed back.

        Raises: StoreError when the database fails it for good; its watchers are told that, and the
        next life takes it up again.
        """
        entry = without_command(self._inbox.load(entry_id))
        turn = RunningTurn(entry, Cancel(), self._watch.log_of(entry.turn_id))
        token = events.turn_id.set(entry.turn_id)
        self._running[entry.turn_id] = turn
        try:
            with self._agents(entry.inbound.pin) as agent:
                self._run(turn, agent)
        except GreenletExit:
            # A planned end whose tool did not let go in time is no attempt that took the daemon down.
            self._hand_back(entry)
            raise
        except StoreClosed:
            log.info("Turn %s waits in the inbox: the database is closed", entry.turn_id)
        except EntryDropped:
            self.drop(entry.turn_id)
        except Exception:
            # The boundary of a turn: whatever broke it must not take the conversation's queue along.
            log.exception("Turn %s broke", entry.turn_id)
            self._end_broken(turn)
        finally:
            del self._running[entry.turn_id]
            events.turn_id.reset(token)

    def cancel(self, key: ConversationKey | None, reason: str) -> int:
        """Stop the running turn of one conversation, or all of them; how many were told to stop."""
        chosen = [turn for turn in self._running.values() if key is None or turn.entry.key == key]
        for turn in chosen:
            turn.cancel.set(reason)
        return len(chosen)

    def cancel_turn(self, turn_id: str, reason: str) -> bool:
        """Stop one turn; False when it is not running."""
        turn = self._running.get(turn_id)
        if turn is not None:
            turn.cancel.set(reason)
        return turn is not None

    def make_room(self, key: ConversationKey) -> None:
        """Sum up the older part of a conversation before its next question to a model."""
        self._wanting_room.add(key)

    def drop(self, turn_id: str) -> None:
        """Tell who watches a turn that it was deleted before it began, and keep nothing of it."""
        turn_log = self._watch.find(turn_id)
        if turn_log is not None and not turn_log.is_over:
            turn_log.publish("done", **done(TurnStatus.CANCELLED.value, DROPPED, Usage(), "cancelled"))
        self._watch.forget(turn_id)

    def forget(self, key: ConversationKey, conversation_id: str) -> None:
        """Drop what memory holds of a conversation that was deleted."""
        self._conversation_ids.pop(key, None)
        self._wanting_room.discard(key)
        self._untold.pop(key, None)
        self._histories.forget(conversation_id)

    def answer(self, entry: InboxEntry, text: str, *, status: TurnStatus = TurnStatus.COMPLETED) -> None:
        """End an entry's turn with this text and no agent: a slash command's answer, or an apology."""
        code = None if status is TurnStatus.COMPLETED else status.value
        turn = RunningTurn(entry, Cancel(), self._watch.log_of(entry.turn_id))

        try:
            turn.life = durably(
                self._db,
                turn,
                lambda connection: self._inbox.begin(connection, entry, "", provider="", model=""),
            )
            turn.log.start_life(turn.life)
            self._end(turn, TurnEnded(status, text, Usage(), code))
        except StoreClosed:
            raise
        except EntryDropped:
            self.drop(entry.turn_id)
        except StoreError:
            self._end_broken(turn)

    def _give_up(self, turn: RunningTurn) -> None:
        """Close an entry that took the daemon down too often, with honest words."""
        entry = turn.entry
        record = self._inbox.turn(entry.turn_id)
        turn.log.start_life(record.attempt + 1 if record else 1)
        self._tell_again(turn)
        turn.conversation_id = self._conversations.open(entry.key).id
        self._close_open_calls(turn, INTERRUPTED)
        self._end(turn, TurnEnded(TurnStatus.INTERRUPTED, POISON, Usage(), "interrupted"))

    def _run(self, turn: RunningTurn, agent: Agent) -> None:
        entry = turn.entry
        if entry.attempts >= TRIES:
            self._give_up(turn)
            return
        deadline = Deadline.after(self._timeout_s())
        self._begin(turn, agent.provider)
        context = self._make_context(entry, turn.cancel, deadline, ProgressLine(turn.log, self._clock))
        thinking = Thinking(
            context,
            self._histories.get(turn.conversation_id),
            conversation_id=turn.conversation_id,
            summary=self._histories.summary_of(turn.conversation_id),
            wants_room=entry.key in self._wanting_room,
            steered=lambda: self._folding.fold(turn),
            day=self._ledger,
        )
        if turn.life > 1:
            self._go_on_counting(turn, thinking)
        self._wanting_room.discard(entry.key)
        if (untold := self._untold.pop(entry.key, None)) is not None:
            turn.log.publish("notice", text=untold)
        ended = self._think(turn, agent, thinking)
        if ended is not None:
            self._end(turn, ended)
            if ended.status is TurnStatus.COMPLETED:
                self._tidy(turn, agent, thinking)
        else:
            self._bill(turn)
            self._hand_back(entry)

    def _go_on_counting(self, turn: RunningTurn, thinking: Thinking) -> None:
        """What earlier lives of the turn took stays taken: an end in the middle gives no new budget."""
        turn_id = turn.entry.turn_id
        thinking.spent = self._db.read(lambda connection: spent_within(connection, turn_id))
        stored = self._conversations.of_turn(turn_id)
        thinking.steps = sum(isinstance(each.message, AssistantMessage) for each in stored)

    def _tidy(self, turn: RunningTurn, agent: Agent, thinking: Thinking) -> None:
        """Sum up behind the delivered answer what the next question would have no room for."""
        thinking.messages[:] = self._histories.get(turn.conversation_id)
        thinking.summary = self._histories.summary_of(turn.conversation_id)
        try:
            for event in agent.tidied(thinking):
                if isinstance(event, Called):
                    self._note_call(turn, event.call)
                elif isinstance(event, Compacted):
                    self._sum_up(turn, event)
                elif isinstance(event, Notice):  # this turn's watchers are gone
                    self._untold[turn.entry.key] = event.text
        except (Cancelled, StoreError) as why:
            log.info("Turn %s leaves its conversation as it is: %s", turn.entry.turn_id, why)

    def _note_call(self, turn: RunningTurn, call: ModelCall) -> None:
        """For the bill, and at once for what may still be spent today."""
        turn.calls.append(call)
        self._ledger.note(call, conversation_id=turn.conversation_id)

    def _sum_up(self, turn: RunningTurn, event: Compacted) -> None:
        """Store a summary, and in any case what it took."""
        id, turn_id, summary = turn.conversation_id, turn.entry.turn_id, event.summary

        def store(connection: Connection) -> bool:
            return summary is not None and self._conversations.sum_up(
                connection, id, turn_id, summary, event.kept
            )

        is_stored = self._commit(turn, [], store)
        if summary is not None and is_stored:
            self._histories.sum_up(id, summary, len(event.kept))
            events.emit("summary.stored", turn_id=turn_id, messages=summary.messages)

    def _bill(self, turn: RunningTurn) -> None:
        """Store the calls that no step will be stored for."""
        if turn.calls:
            self._commit(turn, [], _nothing_more)

    def _hand_back(self, entry: InboxEntry) -> None:
        try:
            self._inbox.hand_back(entry)
        except StoreError as failure:
            log.warning("Turn %s counts as begun in its next life: %s", entry.turn_id, failure)

    def _begin(self, turn: RunningTurn, provider: Provider) -> None:
        """Make the beginning durable, with the person's words when it is the first one."""
        entry = turn.entry
        words: list[ChatMessage] = [self._words_of(entry)]
        known_id = turn.conversation_id = self._conversation_ids.get(entry.key, "")

        def work(connection: Connection) -> tuple[str, int, bool]:
            conversation_id = (
                known_id
                or self._conversations.open_within(connection, entry.key, now_ms=self._clock.now_ms()).id
            )
            life = self._inbox.begin(
                connection, entry, conversation_id, provider=provider.name, model=provider.model
            )
            is_first = False
            if life == 1:
                stored = self._conversations.append(connection, conversation_id, entry.turn_id, words)
                is_first = stored[0].position == 1
            return conversation_id, life, is_first

        turn.conversation_id, turn.life, is_first = durably(self._db, turn, work)
        self._remember(entry.key, turn.conversation_id)
        turn.log.start_life(turn.life)
        if is_first:
            self._histories.begin(turn.conversation_id, words)
        elif turn.life == 1:
            self._histories.extend(turn.conversation_id, words)
        else:
            self._close_open_calls(turn, INTERRUPTED)
            self._tell_again(turn)
        events.emit("inbox.running", turn_id=entry.turn_id, life=turn.life)

    def _words_of(self, entry: InboxEntry) -> UserMessage:
        return words_of(entry, self._clock.now_ms(), self._find_pictures)

    def _tell_again(self, turn: RunningTurn) -> None:
        """Have watchers drop what they show, and give them the steps that are stored."""
        turn.log.publish("restarted")
        publish_steps(turn.log, self._conversations.of_turn(turn.entry.turn_id))

    def _remember(self, key: ConversationKey, conversation_id: str) -> None:
        """Spare the next turns of this conversation the look for its id."""
        self._conversation_ids[key] = conversation_id
        self._conversation_ids.move_to_end(key)
        if len(self._conversation_ids) > KNOWN_CONVERSATIONS:
            self._conversation_ids.popitem(last=False)

    def _think(self, turn: RunningTurn, agent: Agent, thinking: Thinking) -> TurnEnded | None:
        """Drive the agent to its end; None when the turn is to be handed back."""
        try:
            for event in agent.run(thinking):
                if isinstance(event, TurnEnded):
                    if event.status is TurnStatus.CANCELLED:
                        break
                    return event
                if isinstance(event, PhaseChanged):
                    if len(turn.decisions) < MOST_DECISIONS:
                        turn.decisions.append(f"{event.phase.value}: {event.decision}")
                elif isinstance(event, Corrected):
                    publish(turn.log, Corrected(self._redact(event.text)))
                    continue
                elif isinstance(event, TextDelta):
                    turn.said += event.text
                elif isinstance(event, Called):
                    self._note_call(turn, event.call)
                elif isinstance(event, Restarted):
                    turn.said = ""
                    self._tell_again(turn)
                    continue
                elif isinstance(event, Compacted):
                    self._sum_up(turn, event)
                    continue
                elif isinstance(event, Replied):
                    turn.said = ""
                    turn.has_asked_for_tools = True
                    self._step(turn, event.reply, "step.model_reply")
                elif isinstance(event, ToolReplied):
                    self._step(turn, event.result, "step.tool_result")
                publish(turn.log, event)
        except Cancelled:
            pass
        if turn.cancel.reason == HANDED_BACK:
            return None
        return TurnEnded(
            TurnStatus.CANCELLED, f"Stopped {turn.cancel.reason}.", thinking.usage, "cancelled"
        )

    def _step(self, turn: RunningTurn, message: ChatMessage, name: str) -> None:
        """Make one step durable before the agent goes on."""
        self._commit(turn, [message], _nothing_more)
        events.emit(name, turn_id=turn.entry.turn_id)

    def _end(self, turn: RunningTurn, ended: TurnEnded) -> None:
        """Store the reply with its outbox chunks in one commit, tell the watchers, start delivery."""
        entry = turn.entry
        ended = replace(ended, text=self._redact(ended.text))
        if turn.has_asked_for_tools:
            self._close_open_calls(
                turn, "Stopped before it came to an end; whether it had an effect is unknown."
            )
        final = [AssistantMessage(self._redact(_remembered(turn, ended)))] if turn.conversation_id else []

        def end(connection: Connection) -> tuple[list[Chunk], Spent]:
            spent = spent_within(connection, entry.turn_id)
            self._inbox.end(connection, entry, ended.status.value, spent, ended.error_code)
            self._inbox.decided(connection, entry, turn.decisions)
            return self._outbox.put(connection, entry.turn_id, entry.key, ended.text), spent

        chunks, spent = self._commit(turn, final, end)
        ended = replace(ended, usage=spent.usage, cost_micro_usd=spent.cost_micro_usd)
        if ended.status is not TurnStatus.COMPLETED:
            is_quote = ended.error_code in QUOTING
            why = ended.error_code if is_quote else " ".join(ended.text.split())
            log.warning("Ended as %s: %s", ended.status.value, why)
        events.emit("step.final", turn_id=entry.turn_id, status=ended.status.value)
        publish(turn.log, ended)
        self._watch.close(entry.turn_id)
        self._outbox.send(chunks)

    def _end_broken(self, turn: RunningTurn) -> None:
        """End a turn that broke, from what is stored of it.

        A write that was given up may be committed all the same, so first all are waited for, and what
        memory holds of the conversation is dropped.
        """
        turn_id = turn.entry.turn_id
        try:
            durably(self._db, turn, _nothing_more)
            self._histories.forget(turn.conversation_id)
            record = self._inbox.turn(turn_id)
            if record is None or record.state == "running":
                turn.has_asked_for_tools = bool(turn.conversation_id)  # in an earlier life, perhaps
                self._end(turn, TurnEnded(TurnStatus.FAILED, BROKEN, Usage(), "internal"))
                return
            chunks = self._outbox.unsent(turn_id)
            text = "".join(chunk.text for chunk in chunks)
            cost = record.cost_micro_usd
            turn.log.publish(
                "done", **done(record.state, text, record.usage, record.error, cost_micro_usd=cost)
            )
            self._outbox.send(chunks)
        except StoreClosed:
            raise  # a planned end: the watchers come back to the next life
        except StoreError as failure:
            words = f"{failure} The message is kept; fermix takes it up when it is started again."
            turn.log.publish("done", **done(TurnStatus.INTERRUPTED.value, words, Usage(), failure.code))
            raise
        finally:
            self._watch.close(turn_id)

    def _close_open_calls(self, turn: RunningTurn, words: str) -> None:
        """Answer tool calls that have no result, so that call and result are never split."""
        open_calls = unanswered(self._histories.get(turn.conversation_id))
        if not open_calls:
            return
        results = [ToolMessage(call_id, name, words, is_error=True) for call_id, name in open_calls]
        self._commit(turn, results, _nothing_more)

    def _commit(
        self,
        turn: RunningTurn,
        steps: Sequence[ChatMessage],
        more: Callable[[Connection], Result],
    ) -> Result:
        """Steps, the calls of models that led to them, and what else belongs with them, in one commit."""
        conversation_id, turn_id = turn.conversation_id, turn.entry.turn_id

        def work(connection: Connection) -> Result:
            self._conversations.append(connection, conversation_id, turn_id, steps)
            record_within(connection, turn.calls, turn_id=turn_id, conversation_id=conversation_id)
            return more(connection)

        result = durably(self._db, turn, work)
        turn.calls.clear()
        if steps:
            self._histories.extend(conversation_id, steps)
        return result


def _nothing_more(connection: Connection) -> None:
    """What belongs with some steps when nothing else does."""


def unanswered(messages: list[ChatMessage]) -> list[tuple[str, str]]:
    """Id and name of the last reply's tool calls that have no result yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.call_id)
        elif isinstance(message, AssistantMessage):
            return [(call.id, call.name) for call in message.tool_calls if call.id not in answered]
        else:
            return []
    return []


def _remembered(turn: RunningTurn, ended: TurnEnded) -> str:
    """What the conversation keeps of the end: of a stopped answer, what was said until then.

    Our own word for the stop stays out of it: small models take it up and answer with it for ever.
    """
    if ended.status is TurnStatus.CANCELLED:
        return turn.said.strip() or "…"
    return ended.text
