"""The parts around the gateway, put together as the daemon does, with fakes at the ports."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from fermix.agent import pictures
from fermix.agent.loop import Agent
from fermix.agent.settings import AgentSettings
from fermix.agent.thinking import Keeper
from fermix.capabilities.context import ToolContext
from fermix.capabilities.invoke import invoke
from fermix.capabilities.registry import Registry
from fermix.capabilities.tool import tool
from fermix.channels.local import LocalChannel
from fermix.channels.port import Channel
from fermix.conversations import ConversationStore, Histories
from fermix.db import Database
from fermix.db.settings import DatabaseSettings
from fermix.gateway.authorizer import ChannelAccess
from fermix.gateway.gateway import Denied, Gateway
from fermix.gateway.inbox import Inbox, InboxEntry
from fermix.gateway.outbox import Outbox
from fermix.gateway.replay import Replay
from fermix.gateway.settings import GatewaySettings
from fermix.gateway.turns import Turns
from fermix.gateway.watch import TurnEvent, Watch
from fermix.messages import ChatMessage, ConversationKey, Inbound
from fermix.tasks import sleep
from fermix.trust import Policy, Standing
from fermix.usage import Ledger, UsageStore
from fermix.usage.told import UsageTeller
from tests.fakes import FakeClock, FakeModel, inbound, tool_context, turn_facts


def until(what: str, is_so: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Let the others run until `is_so`."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s"
        sleep(0.002)


class Office:
    """One life of the gateway on a database."""

    def __init__(
        self,
        path: Path,
        *script: object,
        channels: tuple[Channel, ...] = (),
        access: dict[str, ChannelAccess] | None = None,
        agent: AgentSettings | None = None,
        db: DatabaseSettings | None = None,
        clock: FakeClock | None = None,
        keeper: Keeper | None = None,
        **settings: int,
    ) -> None:
        self.clock = clock or FakeClock()
        self.settings = GatewaySettings(**settings)
        self.model = FakeModel(*(script or ("hi",)))
        self.ran: list[str] = []
        self.on_run: Callable[[ToolContext], object] = lambda ctx: None
        self.db = Database(path, db or DatabaseSettings())
        self.db.start()
        self.inbox = Inbox(self.db, self.clock)
        table: dict[str, Channel] = {"local": LocalChannel(), **{one.name: one for one in channels}}
        self.outbox = Outbox(self.db, channels=table, clock=self.clock, on_delivered=self.inbox.commit)
        self.conversations = ConversationStore(self.db, self.clock)
        self.watch = Watch()
        self.turns = self._make_turns(agent or AgentSettings(), keeper)
        self.gateway = Gateway(
            inbox=self.inbox,
            outbox=self.outbox,
            turns=self.turns,
            watch=self.watch,
            access=access or {},
            settings=lambda: self.settings,
            tell_usage=UsageTeller(UsageStore(self.db), self.clock).tell,
        )
        self.replay = Replay(self.db, inbox=self.inbox, conversations=self.conversations)
        self.is_open = True

    def _make_turns(self, agent: AgentSettings, keeper: Keeper | None) -> Turns:
        registry = Registry(self._tools())
        run = partial(
            invoke,
            registry=registry,
            redact=str,
            result_limit_bytes=agent.tool_result_limit_bytes,
        )
        thinker = Agent(self.model, registry, invoke=run, settings=agent, keeper=keeper)
        return Turns(
            db=self.db,
            inbox=self.inbox,
            outbox=self.outbox,
            conversations=self.conversations,
            histories=Histories(self.conversations, messages=agent.history_messages),
            watch=self.watch,
            ledger=Ledger(self.db, self.clock),
            find_pictures=pictures.find,
            agents=lambda pin: nullcontext(thinker),
            make_context=lambda entry, cancel, deadline, progress: tool_context(
                turn_facts(
                    Path("/"),
                    standing=entry.standing,
                    cancel=cancel,
                    timeout_s=deadline.remaining_s(),
                ),
                progress=progress,
            ),
            clock=self.clock,
            redact=lambda text: text,
            turn_timeout_s=lambda: self.settings.turn_timeout_s,
        )

    def _tools(self):
        @tool(policy=Policy.EXEC)
        def act(ctx: ToolContext, word: str = "it") -> str:
            """Act.

            word: On what.
            """
            self.ran.append(word)
            self.on_run(ctx)
            return f"did {word}"

        return [act]

    def submit(self, text: str = "hello", *, at_most: Standing | None = None, **fields: str) -> InboxEntry:
        """Send a message that is taken."""
        entry = self.send(inbound(text, **fields), at_most=at_most)
        assert isinstance(entry, InboxEntry)
        return entry

    def send(self, message: Inbound, *, at_most: Standing | None = None) -> InboxEntry | Denied:
        return self.gateway.submit(message, at_most=at_most)

    def say(self, text: str = "hello", **fields: str) -> str:
        """What a message is answered with."""
        return str(self.done(self.submit(text, **fields))["text"])

    def done(self, entry: InboxEntry) -> dict[str, object]:
        """The end of a message's turn, once it is there."""
        log = self.watch.find(entry.turn_id)
        assert log is not None
        until(f"the end of {entry.inbound.text!r}", lambda: log.is_over)
        return dict(log.ending)

    def events(self, entry: InboxEntry, after_seq: int = 0) -> list[TurnEvent]:
        """All events of an ended turn."""
        self.done(entry)
        log = self.watch.find(entry.turn_id)
        assert log is not None
        return list(log.follow(after_seq))

    def messages(self, chat: str = "main", channel: str = "local") -> list[ChatMessage]:
        """What is stored of a conversation."""
        found = self.conversations.find(ConversationKey(channel, chat))
        return [] if found is None else [one.message for one in self.conversations.tail(found.id, 1000)]

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return self.db.read(lambda connection: connection.native.execute(query, values).fetchall())

    def change(self, statement: str, *values: object) -> None:
        """Make the rows as a crash would have left them."""
        self.db.write(lambda connection: connection.native.execute(statement, values))

    def crash(self) -> None:
        """End every task where it stands; only what is committed stays, since the database ends first."""
        if self.is_open:
            self.is_open = False
            self.db.stop(5.0)
            self.gateway.stop(2.0)
