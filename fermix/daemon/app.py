"""The composition root: only this file and `parts` know every class."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict

from gevent.lock import BoundedSemaphore

from fermix import __version__, events
from fermix.auth.tokens import Tokens
from fermix.capabilities.tool import Tool
from fermix.clock import SystemClock
from fermix.daemon.launch import Placement
from fermix.daemon.mode import Mode
from fermix.daemon.parts import Surroundings, WorkerParts, specs_of
from fermix.daemon.reload import Outcome, Reload
from fermix.daemon.supervisor import Supervisor
from fermix.errors import DeadlineExceeded, NotReady
from fermix.net.door import warm
from fermix.secrets import Redactor
from fermix.tasks import ChildSpec, Strategy, TaskGroup, sleep
from fermix.telemetry.lines import redacted, set_redaction
from fermix.tools import TOOLS
from fermix.web.health import Check, DaemonState, HealthReport, PartHealth
from fermix.web.port import DeskPort

log = logging.getLogger(__name__)

PRIVATE_IDLE_S = 60.0
"""A private daemon with nobody to talk to leaves after this."""
IDLE_LOOK_S = 1.0
RELOAD_WAIT_S = 60.0


class Runtime:
    """Everything that runs in one worker, from start to stop."""

    def __init__(
        self,
        placement: Placement,
        *,
        sink: events.Sink | None = None,
        tools: tuple[Tool, ...] = TOOLS,
    ) -> None:
        """`sink` None sends events to the debug log."""
        self._placement = placement
        self._live = placement.live
        self._clock = SystemClock()
        self._started_s = self._clock.monotonic_s()
        self._state = DaemonState.STARTING
        self._tasks = TaskGroup("runtime")
        redactor = Redactor()
        set_redaction(redactor.redact)
        events.set_sink(sink or _log_event)
        self._parts = WorkerParts(
            Surroundings(
                live=placement.live,
                home=placement.home,
                environment=placement.environment,
                control=placement.control,
                has_http=placement.http is not None,
                clock=self._clock,
                redactor=redactor,
                tools=tools,
                status=self.status,
                stop=self._ask_to_stop,
                reload=self._reload_everywhere,
            )
        )
        self._reloading = BoundedSemaphore(1)
        self._reload = Reload(
            placement.live,
            placement.home,
            placement.environment,
            steps=(*placement.steps, *self._parts.steps()),
        )
        self._tree = Supervisor(
            "fermix",
            [ChildSpec(name, start) for name, start in specs_of(self._parts)],
            strategy=Strategy.REST_FOR_ONE,
            clock=self._clock,
        )

    def start(self) -> None:
        """Start the tree; returns when messages are taken in. Raises: what the first part raised."""
        self._tree.start()
        self._state = DaemonState.READY
        # Only now: what a first request must load is not what a start should wait for.
        self._tasks.start(warm, name="warm")
        if self._placement.mode is Mode.PRIVATE:
            self._tasks.start(self._leave_when_idle, name="idle")

    def wait(self, timeout_s: float) -> bool:
        """Whether the tree ended within `timeout_s`; raises RestartsExceeded when it gave up."""
        return self._tree.wait(timeout_s)

    def drain(self, timeout_s: float) -> None:
        """Take nothing new in; let running turns end or hand them back to the inbox."""
        self._state = DaemonState.DRAINING
        if self._parts.gateway is not None:
            self._parts.gateway.drain(timeout_s)

    def stop(self) -> None:
        """Stop every part in mirrored order."""
        self._state = DaemonState.DRAINING
        self._tasks.stop(1.0)
        self._tree.stop(self._live.now.runtime.stop_s)

    def reload(self) -> Outcome:
        """Take up what config.toml says now; turns that run keep what they began with.

        Raises: FermixError when that cannot work; then nothing has changed.
        """
        if not self._reloading.acquire(timeout=RELOAD_WAIT_S):
            raise DeadlineExceeded("Another reload has not come to its end.", hint="fermix logs")
        try:
            return self._reload.run()
        finally:
            self._reloading.release()

    def _reload_everywhere(self) -> Outcome:
        """As `reload`, for a client: whoever sends SIGHUP has told the arbiter already."""
        outcome = self.reload()
        log.info("%s", outcome)
        self._placement.on_reload()
        return outcome

    def ripcord(self) -> None:
        """Stop every turn and command now, then the daemon."""
        self._state = DaemonState.DRAINING
        if self._parts.gateway is not None:
            self._parts.gateway.turns.cancel(None, "by the ripcord")
        self._parts.commands.stop(1.0)
        self._ask_to_stop(False)

    def health(self) -> HealthReport:
        """The state of the tree and the database."""
        return HealthReport(
            status=self._health_state(),
            version=__version__,
            uptime_ms=self._uptime_ms(),
            pid=os.getpid(),
            children=tuple(
                PartHealth(part.name, part.state.value, part.restarts, part.last_error, part.since_ms)
                for part in self._tree.report()
            ),
            checks=self._checks(),
        )

    def desk(self) -> DeskPort:
        """Where turns and sessions are kept. Raises: NotReady while the gateway is down."""
        if self._parts.gateway is None:
            raise NotReady("fermix is starting and takes no messages yet.", hint="fermix status")
        return self._parts.desk

    def tokens(self) -> Tokens:
        """Who may come in over HTTP."""
        return self._parts.tokens

    def is_of_a_turn(self, peer: tuple[str, int], own: tuple[str, int]) -> bool:
        """Whether a process that a turn has started is at the other end of a connection."""
        return self._parts.commands.holds_connection(peer, own)

    def status(self) -> Mapping[str, object]:
        """What `fermix status` shows."""
        gateway = self._parts.gateway
        queue = gateway.queue if gateway is not None else None
        provider = self._parts.provider
        return {
            "pid": os.getpid(),
            "arbiter_pid": os.getppid(),
            "version": __version__,
            "uptime_ms": self._uptime_ms(),
            "state": self._health_state().value,
            "mode": self._placement.mode.value,
            "http": self._placement.http,
            "https": bool(self._placement.http and self._live.now.http.tls_certificate),
            "home": str(self._placement.home.root),
            "turns": {
                "running": queue.running if queue is not None else 0,
                "waiting": queue.waiting if queue is not None else 0,
            },
            "provider": {"name": provider.name, "model": provider.model},
            "providers": [
                {
                    "name": route.name,
                    "model": route.model,
                    "state": route.state.value,
                    "rest_s": round(route.rest_s, 1),
                    "reason": route.reason and redacted(route.reason),
                }
                for route in self._parts.agents.chain.report()
            ],
            "children": [
                {
                    "name": part.name,
                    "state": part.state.value,
                    "restarts": part.restarts,
                    "last_error": part.last_error and redacted(part.last_error),
                }
                for part in self._tree.report()
            ],
            "checks": [asdict(check) for check in self._checks()],
        }

    def _health_state(self) -> DaemonState:
        if self._state is not DaemonState.READY:
            return self._state
        is_whole = all(part.state.value == "running" for part in self._tree.report())
        if is_whole and all(check.is_ok for check in self._checks()):
            return DaemonState.READY
        return DaemonState.DEGRADED

    def _checks(self) -> tuple[Check, ...]:
        if self._state is DaemonState.STARTING:
            return ()
        store = self._parts.db.health()
        damaged = store.integrity.value == "damaged"
        detail = store.last_error or f"{store.journal_mode}, schema {store.schema}, {store.integrity.value}"
        return (Check("database", store.is_open and not damaged and store.last_error is None, detail),)

    def _uptime_ms(self) -> int:
        return int((self._clock.monotonic_s() - self._started_s) * 1000)

    def _ask_to_stop(self, only_private: bool) -> bool:
        """Begin the daemon's end; False when only a private one should and this is none."""
        if only_private and self._placement.mode is not Mode.PRIVATE:
            return False
        os.kill(os.getppid(), signal.SIGTERM)
        return True

    def _leave_when_idle(self) -> None:
        idle_s = 0.0
        while idle_s < PRIVATE_IDLE_S:
            sleep(IDLE_LOOK_S)
            gateway, server = self._parts.gateway, self._parts.server
            is_busy = gateway is not None and (gateway.queue.running or gateway.queue.waiting)
            is_watched = server is not None and server.clients > 0
            idle_s = 0.0 if is_busy or is_watched else idle_s + IDLE_LOOK_S
        log.info("Nobody came for %g s; a private daemon leaves", PRIVATE_IDLE_S)
        self._ask_to_stop(True)


def _log_event(name: str, fields: dict[str, object]) -> None:
    log.debug("%s %s", name, fields)
