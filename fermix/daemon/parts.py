"""The parts of one worker, made in order; each start makes anew what rests on what was restarted."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, TypeVar, cast

from fermix import events
from fermix.agent import bootstrap, pictures
from fermix.agent.composer import Composer
from fermix.agent.settings import AgentSettings
from fermix.auth.tokens import Tokens
from fermix.capabilities.context import ToolContext
from fermix.capabilities.effects import Effect, Effects, keep_out_of_home, keep_out_of_proc
from fermix.capabilities.registry import Registry
from fermix.capabilities.tool import Tool
from fermix.capabilities.turn import TurnFacts
from fermix.channels import CHANNELS
from fermix.channels.port import Channel
from fermix.clock import Clock
from fermix.conversations import ConversationStore, Histories, ResultStore
from fermix.daemon.agents import Agents, Materials
from fermix.daemon.blobs import Blobs
from fermix.daemon.control import table_of
from fermix.daemon.desk import Desk
from fermix.daemon.folders import folder_of, root_of
from fermix.daemon.methods.auth import AuthMethods
from fermix.daemon.methods.daemon import DaemonMethods
from fermix.daemon.methods.probe_parts import ProbeParts
from fermix.daemon.methods.prompt import PromptMethods
from fermix.daemon.methods.provider import ProviderMethods
from fermix.daemon.methods.sessions import SessionMethods
from fermix.daemon.methods.tokens import TokenMethods
from fermix.daemon.methods.turns import TurnMethods
from fermix.daemon.methods.usage import UsageMethods
from fermix.daemon.reload import LiveSettings, Outcome, Step
from fermix.daemon.removals import Removals
from fermix.daemon.sections import Settings
from fermix.db import Database
from fermix.errors import DeadlineExceeded, StoreError, StoreGone
from fermix.gateway.authorizer import LOCAL
from fermix.gateway.erase import Eraser
from fermix.gateway.gateway import Gateway
from fermix.gateway.inbox import Inbox, InboxEntry
from fermix.gateway.outbox import Outbox
from fermix.gateway.replay import Replay
from fermix.gateway.turns import Turns
from fermix.gateway.watch import Watch
from fermix.ipc.server import ControlServer
from fermix.messages import ToolCall
from fermix.paths import Home
from fermix.process import CommandHost, GroupLedger, Helper, child_environment
from fermix.process.settings import CommandSettings
from fermix.providers.build import load
from fermix.providers.port import Provider
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret
from fermix.secrets import Redactor, SecretStores
from fermix.tasks import Cancel, Child, Deadline, Service, ThreadPool
from fermix.usage import Ledger, UsageStore
from fermix.usage.told import UsageTeller

if TYPE_CHECKING:
    from fermix.auth.oauth.keeper import SignIns

log = logging.getLogger(__name__)

Result = TypeVar("Result")

FOLDER_TIMEOUT_S = 10.0
FILE_THREADS = 8
"""Files worked on at once by all turns together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the parts are made from and never change while they live."""

    live: LiveSettings
    home: Home
    environment: Mapping[str, str]
    control: socket.socket
    has_http: bool
    clock: Clock
    redactor: Redactor
    tools: tuple[Tool, ...]
    status: Callable[[], Mapping[str, object]]
    stop: Callable[[bool], bool]
    reload: Callable[[], Outcome]

    @property
    def settings(self) -> Settings:
        """Those that count now; what must follow a change asks again, or has a step."""
        return self.live.now


class WorkerParts:
    """Starters for the supervisor; each leaves its part in a field for those that rest on it."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.pool = ThreadPool(FILE_THREADS)
        self.tokens = Tokens(around.home, clock=around.clock, pool=self.pool, know=around.redactor.add)
        self.registry = Registry(around.tools)
        self.ledger = GroupLedger(around.home.groups)
        self.db: Database
        self.commands: CommandHost
        self.agents: Agents
        self.results: ResultStore
        self.histories: Histories
        self.usage: UsageStore
        self.desk: Desk
        self.gateway: Gateway | None = None
        self.server: ControlServer | None = None

    def start_db(self) -> Child:
        """The store, open and migrated; a home that was taken away is not begun anew.

        Raises: StoreGone, and as `Database.start`.
        """
        if not self._around.home.root.is_dir():
            raise StoreGone(
                f"The home '{self._around.home.root}' is gone.", hint="Put it back where it was."
            )
        self.db = Database(self._around.home.database, self._around.settings.database)
        self.db.start()
        return self.db

    def start_commands(self) -> Child:
        """The command host, with nothing left of an earlier life's commands."""
        self.ledger.sweep_leftovers()
        around = self._around
        self.commands = CommandHost(self.ledger, lambda: around.settings.commands, around.clock)
        return Service(self.commands.stop)

    @cached_property
    def sign_ins(self) -> SignIns:
        """Made when somebody signs in or asks with a sign-in: most homes have a key instead."""
        from fermix.auth.oauth.keeper import SignIns  # lazy: it is that part of the daemon most never use

        around = self._around
        return SignIns(around.home, clock=around.clock, pool=self.pool, know=around.redactor.add)

    @property
    def provider(self) -> Provider:
        """Who answers the next turn."""
        return self.agents.provider

    def steps(self) -> tuple[Step, ...]:
        """What the parts do at a reload; the rest of them asks for each setting when it needs it."""
        return (
            Step(None, lambda new: self.agents.prepare(new)),  # noqa: PLW0108 (they are made later)
            Step(("agent",), lambda new: lambda: self.histories.hold(new.agent.history_messages)),
            Step(("gateway",), lambda new: self._settings_of_gateway_changed),
        )

    def _settings_of_gateway_changed(self) -> None:
        if self.gateway is not None:
            self.gateway.settings_changed()

    def start_agent(self) -> Child:
        """The provider the settings name, and the loop that asks it."""
        around = self._around

        def vendor_parts(settings: Settings, secret: Callable[[str], Secret]) -> Parts:
            return Parts(
                secret=secret,
                home=around.home,
                environment=around.environment,
                start_helper=lambda spec: Helper(spec, self.ledger),
                pool=self.pool,
                local=settings.local_model,
                clock=around.clock,
                sign_ins=lambda: self.sign_ins,
            )

        def compose(settings: AgentSettings) -> Composer:
            words = self.pool.run(
                partial(bootstrap.read, around.home.bootstrap), timeout_s=FOLDER_TIMEOUT_S
            )
            for problem in words.problems:
                log.warning("%s", problem)
            return Composer(settings, words, workspace=str(around.home.workspace))

        self._seed()
        self.results = ResultStore(self.db, self.pool, around.clock)
        self.agents = Agents(
            around.live,
            Materials(
                registry=self.registry,
                redact=around.redactor.redact,
                open_stores=lambda settings: SecretStores(
                    around.home, around.environment, redactor=around.redactor, settings=settings.secrets
                ),
                vendor_parts=vendor_parts,
                compose=compose,
                keep_result=self._keep_result,
                read_pictures=lambda images: self._unless_slow(partial(pictures.read, images), {}),
            ),
        )
        return Service(self._stop_agent)

    def _keep_result(self, call: ToolCall, turn: TurnFacts, text: str) -> str:
        try:
            return self.results.put(turn.key, turn.id, call.name, text)
        except (StoreError, DeadlineExceeded) as error:
            log.warning("A long result of %s is not kept: %s", call.name, error)
            return ""

    def _stop_agent(self, timeout_s: float) -> None:
        self.agents.stop(timeout_s)
        if "sign_ins" in self.__dict__:
            self.sign_ins.stop(timeout_s)

    def _seed(self) -> None:
        """Give the owner the files of instructions once; without them the built-in words count."""
        try:
            self.pool.run(partial(bootstrap.seed, self._around.home.bootstrap), timeout_s=FOLDER_TIMEOUT_S)
        except OSError as error:
            log.warning("The files of instructions could not be made: %s", error)

    def _unless_slow(self, work: Callable[[], Result], otherwise: Result) -> Result:
        """What `work` gives off the hub; a disk that does not answer costs a picture, not the turn."""
        try:
            return self.pool.run(work, timeout_s=FOLDER_TIMEOUT_S)
        except DeadlineExceeded as error:
            log.warning("Pictures are left out: %s", error)
            return otherwise

    def start_gateway(self) -> Child:
        """Inbox, queue, turns and outbox; what an earlier life left is taken up at once."""
        around = self._around
        db, clock = self.db, around.clock
        inbox = Inbox(db, clock)
        outbox = Outbox(db, channels=_channels(), clock=clock, on_delivered=inbox.commit)
        conversations = ConversationStore(db, clock)
        watch = Watch(around.redactor)
        self.histories = Histories(conversations, messages=around.settings.agent.history_messages)
        self.usage = UsageStore(db)
        turns = Turns(
            db=db,
            inbox=inbox,
            outbox=outbox,
            conversations=conversations,
            histories=self.histories,
            watch=watch,
            ledger=Ledger(db, clock),
            find_pictures=lambda paths: self._unless_slow(partial(pictures.find, paths), ()),
            agents=self.agents.lent,
            make_context=self._context_maker(),
            clock=clock,
            redact=around.redactor.redact,
            turn_timeout_s=lambda: around.settings.gateway.turn_timeout_s,
        )
        self.gateway = gateway = Gateway(
            inbox=inbox,
            outbox=outbox,
            turns=turns,
            watch=watch,
            access={},
            settings=lambda: around.settings.gateway,
            tell_usage=UsageTeller(self.usage, clock).tell,
        )
        removals = Removals(around.home, self.pool)
        eraser = Eraser(
            db, queue=gateway.queue, turns=turns, inbox=inbox, files=removals, now_ms=clock.now_ms
        )
        eraser.recover()
        blobs = Blobs(around.home, clock=clock, pool=self.pool)
        self.pool.run(blobs.sweep, timeout_s=60.0)
        self.desk = Desk(
            gateway=gateway,
            watch=watch,
            replay=Replay(db, inbox=inbox, conversations=conversations, redactor=around.redactor),
            conversations=conversations,
            blobs=blobs,
            confirm=partial(outbox.confirm, channel=LOCAL),
            erase=eraser.erase,
            check_pin=self.agents.pins.check,
            clock=clock,
        )
        gateway.recover()

        def stop(timeout_s: float) -> None:
            gateway.stop(timeout_s)
            eraser.stop(1.0)

        return Service(stop)

    def start_control(self) -> Child:
        """The control socket's server, on the listener that outlives this worker."""
        around = self._around
        if around.has_http:
            self.tokens.prepare()
        groups = (
            DaemonMethods(status=around.status, stop=around.stop, reload=around.reload),
            TurnMethods(self.desk),
            SessionMethods(self.desk),
            TokenMethods(self.tokens),
            UsageMethods(self.usage, self.desk),
            AuthMethods(
                sign_ins=lambda: self.sign_ins,
                providers=lambda: around.settings.providers,
                on_login=lambda: self.agents.chain.look_again(),  # noqa: PLW0108 (a later agent's too)
                clock=around.clock,
            ),
            PromptMethods(
                agent=lambda: self.agents.present.agent, registry=self.registry, clock=around.clock
            ),
            ProviderMethods(
                ProbeParts(
                    provider=lambda: self.provider,
                    settings=lambda: around.settings,
                    secret=self.agents.secret,
                    redactor=around.redactor,
                    clock=around.clock,
                )
            ),
        )
        self.server = ControlServer(
            around.control,
            table_of(groups),
            settings=lambda: around.settings.control,
            standing_of=self.commands.standing_of,
            redact=around.redactor.redact,
        )
        return self.server.start()

    def _context_maker(self) -> Callable[..., ToolContext]:
        around, home = self._around, self._around.home

        @lru_cache(maxsize=1)
        def effects(settings: CommandSettings) -> Effects:
            return Effects(
                checks=(keep_out_of_home(home.root, home.workspace), keep_out_of_proc),
                record=_record,
                commands=self.commands,
                environment=child_environment(
                    around.environment, settings.environment, {"FERMIX_HOME": str(home.root)}
                ),
                limits=settings.limits(),
                pool=self.pool,
            )

        def make(
            entry: InboxEntry, cancel: Cancel, deadline: Deadline, progress: Callable[[str], None]
        ) -> ToolContext:
            facts = TurnFacts(
                id=entry.turn_id,
                key=entry.key,
                standing=entry.standing,
                # off the hub: the sender's folder may lie on a network disk that is gone
                cwd=self.pool.run(partial(folder_of, entry, home), timeout_s=FOLDER_TIMEOUT_S),
                file_root=root_of(entry, home),
                deadline=deadline,
                cancel=cancel,
            )
            return ToolContext(
                turn=facts,
                effects=effects(around.settings.commands),
                progress=lambda text: progress(around.redactor.redact(text)),
                clock=around.clock,
                recall=lambda id: self.results.get(entry.key, id),
            )

        return make


def specs_of(parts: WorkerParts) -> Iterable[tuple[str, Callable[[], Child]]]:
    """Every part's name and starter, in the order they rest on each other."""
    return (
        ("db", parts.start_db),
        ("commands", parts.start_commands),
        ("agent", parts.start_agent),
        ("gateway", parts.start_gateway),
        ("control", parts.start_control),
    )


def _channels() -> dict[str, Channel]:
    return {name: cast(Callable[[], Channel], load(path))() for name, path in CHANNELS.items()}


def _record(effect: Effect, turn: TurnFacts) -> None:
    events.emit("effect", turn_id=turn.id, kind=type(effect).__name__)
