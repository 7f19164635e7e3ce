"""The gateway: takes messages from channels, gives them to turns, takes up what a crash left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fermix import events
from fermix.agent.events import TurnStatus
from fermix.errors import Draining, OwnerError, StoreError, UsageError
from fermix.gateway import commands
from fermix.gateway.authorizer import ChannelAccess, authorize
from fermix.gateway.inbox import Inbox, InboxEntry
from fermix.gateway.outbox import Outbox
from fermix.gateway.queue import Queue
from fermix.gateway.settings import GatewaySettings
from fermix.gateway.steering import WAITS_FOR_STEP, Steering, words_of
from fermix.gateway.turns import HANDED_BACK, TRIES, Turns
from fermix.gateway.watch import Watch
from fermix.messages import ConversationKey, Inbound
from fermix.tasks import Deadline, TaskGroup
from fermix.trust import Standing, Trust

log = logging.getLogger(__name__)

ACCEPT_TIMEOUT_S = 90.0
"""The database gives up earlier."""
LAST_STEPS_S = 5.0
"""Time the stopped turns get to store where they are."""


@dataclass(frozen=True, slots=True)
class Denied:
    """A sender nobody let in: acknowledged to the platform, nothing stored, nothing answered."""


class Gateway:
    """The one way in for messages, and the one that ends it all in order."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        outbox: Outbox,
        turns: Turns,
        watch: Watch,
        access: Mapping[str, ChannelAccess],
        settings: Callable[[], GatewaySettings],
        tell_usage: Callable[[ConversationKey | None], str],
    ) -> None:
        """`settings` gives those that count now; `settings_changed` tells that others do."""
        self.turns = turns
        self._inbox = inbox
        self._outbox = outbox
        self._watch = watch
        self._access = access
        self._settings = settings
        self._tell_usage = tell_usage
        self.queue = Queue(
            self._run, running_turns=settings().running_turns, waiting_messages=settings().waiting_messages
        )
        self._steering = Steering(self.queue, takes_all=lambda: self._settings().steering == "steer")
        turns.steered_by(self._steering)
        self._accepting = TaskGroup("accepting")
        self._commands = TaskGroup("commands")
        self._is_draining = False
        self.denied = 0

    def submit(self, inbound: Inbound, *, at_most: Standing | None = None) -> InboxEntry | Denied:
        """Accept a message; it is answered whatever happens once this returns.

        `at_most` narrows what the sender may do; None leaves it at what the channel grants.
        Raises: Draining, QueueFull, UsageError, StoreError; then nothing was accepted.
        """
        standing = authorize(inbound.key.channel, inbound.sender_id, self._access)
        if at_most is not None:
            standing = standing.narrowed(at_most)
        if standing.trust is Trust.DENIED:
            self.denied += 1
            log.info("Denied sender %r on %s", inbound.sender_id[:64], inbound.key.channel)
            return Denied()
        try:
            self._check(inbound)
        except OwnerError:
            # What was taken before is not refused now: its sender only asks again.
            if (known := self._inbox.known(inbound.key.channel, inbound.platform_id)) is not None:
                return known
            raise
        return self._accept(inbound, standing)

    def settings_changed(self) -> None:
        """Take up the present limits of the queue; every other setting is asked for when it is needed."""
        present = self._settings()
        self.queue.limit(running_turns=present.running_turns, waiting_messages=present.waiting_messages)

    def known(self, channel: str, platform_id: str) -> InboxEntry | None:
        """The message a channel gave before under this id; None when it is a new one."""
        return self._inbox.known(channel, platform_id)

    def entry_of(self, turn_id: str) -> InboxEntry | None:
        """The accepted message a turn answers; None for an unknown turn."""
        return self._inbox.of_turn(turn_id)

    def cancel_turn(self, turn_id: str, reason: str) -> bool:
        """Stop a turn that runs or waits; False when it is neither."""
        if self.turns.cancel_turn(turn_id, reason):
            return True
        entry = self._inbox.of_turn(turn_id)
        if entry is None:
            return False
        if not self.queue.withdraw(entry.key, entry.id):
            return self.turns.cancel_turn(turn_id, reason)  # it may have begun meanwhile
        words = f"Stopped {reason} before it began."
        # A task of its own: whoever asked may go away, and the entry is out of the queue already.
        self._commands.start(
            lambda: self.turns.answer(entry, words, status=TurnStatus.CANCELLED), name="withdrawn"
        )
        return True

    def recover(self) -> None:
        """Take up what an earlier life accepted and did not bring to its end."""
        # First: a reply of this life must not be taken for one that a crash left behind.
        self._outbox.recover(self._settings().unread_reply_days)
        for entry in self._inbox.unfinished():
            record = self._inbox.turn(entry.turn_id)
            if entry.state == "delivered":
                self._inbox.commit(entry.turn_id)
            elif record is not None and record.state != "running":
                continue  # its reply is in the outbox, which sends it
            else:
                self._watch.log_of(entry.turn_id)
                self._dispatch(entry)

    def drain(self, timeout_s: float) -> None:
        """Take nothing new, let running turns end, hand back to the inbox what does not end in time.

        Contract: all of it takes `timeout_s` at the most.
        """
        self._is_draining = True
        last_s = min(LAST_STEPS_S, timeout_s / 2)
        if not self.queue.drain(timeout_s - last_s):
            count = self.turns.cancel(None, HANDED_BACK)
            log.info("Handing %d running turns back to the inbox", count)
            self.queue.drain(last_s)

    def stop(self, timeout_s: float) -> None:
        """End every task; what is not stored yet is done again in the next life."""
        self._is_draining = True
        deadline = Deadline.after(timeout_s)
        for part in (self.queue, self._accepting, self._commands, self._outbox):
            part.stop(deadline.remaining_s())

    def _accept(self, inbound: Inbound, standing: Standing) -> InboxEntry:
        """Accepted and on its way, both or neither, even if whoever asked is gone in between."""
        outcome: list[InboxEntry | OwnerError] = []

        def work() -> None:
            try:
                entry, is_new = self._inbox.accept(inbound, standing)
            except OwnerError as error:
                outcome.append(error)
                return
            # One that is not new and that nobody works on was stored by a write that was given up.
            if is_new or (entry.state == "received" and self._watch.find(entry.turn_id) is None):
                self._watch.log_of(entry.turn_id)
                self._dispatch(entry)
            outcome.append(entry)

        self._accepting.start(work, name="accept").join(ACCEPT_TIMEOUT_S)
        if not outcome:
            raise StoreError("The message could not be taken; the log says why.", hint="fermix logs")
        if isinstance(outcome[0], OwnerError):
            raise outcome[0]
        return outcome[0]

    def _check(self, inbound: Inbound) -> None:
        if self._is_draining:
            raise Draining("fermix is stopping and takes no new messages.", hint="fermix start")
        size = len(inbound.text.encode(errors="replace"))
        limit = self._settings().text_limit_bytes
        if size > limit:
            raise UsageError(
                f"The message is {size} bytes; at most {limit} are taken.",
                hint="Send long text as a file: fermix ask --attach FILE",
            )
        if not inbound.text.strip() and not inbound.attachments:
            raise UsageError("The message is empty; expected words or a file.")
        if commands.parse(inbound.text) is None or words_of(inbound.text) is not None:
            self.queue.check_room(inbound.key)

    def _dispatch(self, entry: InboxEntry) -> None:
        # What took the daemon down too often is closed by its turn, in its place in the order.
        is_own_turn = entry.attempts >= TRIES or words_of(entry.inbound.text) is not None
        command = None if is_own_turn else commands.parse(entry.inbound.text)
        if command is None:
            if self._steering.offer(entry):
                self._watch.log_of(entry.turn_id).publish("notice", text=WAITS_FOR_STEP)
            self.queue.offer(entry.key, entry.id)
        else:
            self._commands.start(lambda: self._run_command(entry, *command), name=command[0])

    def _run(self, entry_id: str) -> None:
        self._steering.began(entry_id)
        self.turns.run(entry_id)

    def _run_command(self, entry: InboxEntry, name: str, argument: str) -> None:
        token = events.turn_id.set(entry.turn_id)
        try:
            call = commands.CommandCall(
                argument, entry.key, entry.standing, self.turns, tell_usage=self._tell_usage
            )
            self.turns.answer(entry, commands.run(name, call))
        finally:
            events.turn_id.reset(token)
