"""The process that runs everything: hub, runtime, HTTP; forked and replaced by the arbiter."""

from __future__ import annotations

import io
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gevent.util
from gevent import socket
from gevent.server import StreamServer
from gunicorn.workers.ggevent import GeventWorker

from fermix import __version__, native
from fermix.auth.tokens import Tokens
from fermix.daemon.connections import Connections
from fermix.daemon.endings import BOOT_FAILED, FAILED, last_words, status_of
from fermix.daemon.launch import Launch, RuntimePort
from fermix.daemon.reload import Commit, Step
from fermix.daemon.sections import Settings
from fermix.daemon.watchdog import Heartbeat
from fermix.errors import DeadlineExceeded, FermixError, NotReady
from fermix.tasks import Task, TaskGroup, time_limit
from fermix.telemetry.logs import change_logs
from fermix.web.app import build_app
from fermix.web.health import DaemonState, HealthReport
from fermix.web.port import DeskPort
from fermix.web.serving import Serving
from fermix.web.tls import Tls

log = logging.getLogger(__name__)

RELOADED, REFUSED = signal.SIGRTMIN, signal.SIGRTMIN + 1
"""Tell the arbiter that the worker took up other settings, or could not: queued beside the owner's SIGHUP,
never merged with it, so that no request to reload is lost."""

_READY_BIT = 0o100
"""Set in the heartbeat file's mode; writing to it would change the time that is the heartbeat."""

_WAIT_S = 60.0

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True, slots=True)
class HttpServer:
    """What accepts on a listener, and the connections it has open."""

    server: StreamServer
    connections: Connections

    def stop(self, timeout: float) -> None:
        self.server.stop(timeout=timeout)


class RuntimeWorker(GeventWorker):
    """gunicorn's gevent worker around our runtime."""

    launch: Launch

    @property
    def was_ready(self) -> bool:
        """Whether it came so far as to take messages in; the arbiter reads it, also after its death."""
        return bool(os.fstat(self.tmp.fileno()).st_mode & _READY_BIT)

    def live(self, launch: Launch, inherited_mask: Iterable[int]) -> None:
        """The whole life of the process, right after the fork; never returns."""
        self.launch = launch
        self._inherited_mask = set(inherited_mask)
        self._started_s = time.monotonic()
        self._runtime: RuntimePort | None = None
        self._is_ready = False
        self._is_reload_wanted = False
        self._servers: list[HttpServer] = []
        self._drain: Task | None = None
        self._exit_status: int | None = None
        self._tasks = TaskGroup("worker")
        status = FAILED
        try:
            native.set_parent_death_signal(signal.SIGKILL)
            if os.getppid() == self.ppid:  # else the arbiter died before the line above
                launch.logs.reopen()
                self.init_process()
                status = self._exit_status or 0
        except BaseException:  # the process boundary: the arbiter's stack above must never be run here
            log.exception("The worker failed")
        finally:
            logging.shutdown()
            os._exit(status)

    def patch(self) -> None:
        """Take over the listener as a gevent socket; patching was `__main__`'s first line."""
        http = self.launch.http
        self.sockets = (
            [socket.socket(http.FAMILY, socket.SOCK_STREAM, fileno=http.sock.detach())] if http else []
        )

    def init_process(self) -> None:
        native.set_dumpable(False)
        native.become_subreaper()
        super().init_process()

    def load_wsgi(self) -> None:
        app: Any = build_app(self, lambda: self.launch.settings.http)
        self.wsgi = app

    def init_signals(self) -> None:
        """Every signal becomes a byte in the pipe that `run` reads; handlers do nothing."""
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
            signal.siginterrupt(number, False)
        signal.set_wakeup_fd(self.PIPE[1], warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._inherited_mask)

    def run(self) -> None:
        """Serve until told to stop; the status to exit with is then set."""
        heartbeat = Heartbeat(
            self.tmp.notify,
            blocked_log_ms=lambda: self.launch.settings.runtime.hub_blocked_log_ms,
            log_fd=self.launch.logs.present_fd,
        )
        heartbeat.start()
        self._servers = [self._serve(listener) for listener in self.sockets]
        self._tasks.start(self._run_runtime, name="runtime")
        while self._exit_status is None:
            for number in self._next_signals():
                self._handle_signal(number)
        for server in self._servers:
            server.stop(timeout=0.2)
        heartbeat.stop()

    def health(self) -> HealthReport:
        if self._runtime is not None and self._is_ready:
            report = self._runtime.health()
            return replace(report, status=DaemonState.DRAINING) if self._drain else report
        return HealthReport(
            status=DaemonState.DRAINING if self._drain else DaemonState.STARTING,
            version=__version__,
            uptime_ms=int((time.monotonic() - self._started_s) * 1000),
            pid=os.getpid(),
        )

    def desk(self) -> DeskPort:
        if self._runtime is None or not self._is_ready:
            raise NotReady("fermix is starting and takes no messages yet.", hint="fermix status")
        return self._runtime.desk()

    def tokens(self) -> Tokens:
        if self._runtime is None or not self._is_ready:
            raise NotReady("fermix is starting and lets nobody in yet.", hint="fermix status")
        return self._runtime.tokens()

    def is_of_a_turn(self, peer: tuple[str, int], own: tuple[str, int]) -> bool:
        return self._runtime is not None and self._is_ready and self._runtime.is_of_a_turn(peer, own)

    def _serve(self, listener: socket.socket) -> HttpServer:
        listener.setblocking(True)
        http = self.launch.settings.http
        serving = Serving(
            self.wsgi,
            config=self.cfg,
            settings=lambda: self.launch.settings.http,
            tls=Tls(http.tls_certificate, http.tls_key) if http.tls_certificate and http.tls_key else None,
        )
        connections = Connections(http.connections)
        server = StreamServer(listener, handle=partial(serving.handle, listener), spawn=connections)
        server.start()
        return HttpServer(server, connections)

    def _steps(self) -> tuple[Step, ...]:
        """What this process itself does at a reload; all else reads the settings when it needs them."""

        def limit_connections(settings: Settings) -> Commit:
            def commit() -> None:
                for server in self._servers:
                    server.connections.resize(settings.http.connections)

            return commit

        return (
            *self.launch.exposure_steps(),
            Step(("logs",), lambda settings: partial(change_logs, self.launch.logs, settings.logs)),
            Step(("http",), limit_connections),
        )

    def _reload(self, runtime: RuntimePort) -> None:
        try:
            outcome = runtime.reload()
        except FermixError as error:
            log.error("The settings stay as they are: %s", error)
            os.kill(self.ppid, REFUSED)
        else:
            log.info("%s", outcome)
            os.kill(self.ppid, RELOADED)

    def _run_runtime(self) -> None:
        """Start the runtime and watch it to its end."""
        try:
            self._runtime = self.launch.make_runtime(
                self.launch.placement(steps=self._steps(), on_reload=lambda: os.kill(self.ppid, RELOADED))
            )
            self._runtime.start()
        except Exception as error:  # the boundary: whatever it was, this worker cannot work
            self._report_failed_start(error)
            self._finish(status_of(error, otherwise=BOOT_FAILED))
            return
        self._is_ready = True
        os.fchmod(self.tmp.fileno(), 0o600 | _READY_BIT)
        log.info("Ready after %d ms", (time.monotonic() - self._started_s) * 1000)
        if self._is_reload_wanted:
            self._tell("reload", self._reload)
        try:
            while not self._runtime.wait(_WAIT_S):
                pass
        except Exception:  # the boundary: the tree gave up; a new process starts from the stored state
            log.exception("The runtime failed")
            self._finish(FAILED)

    def _report_failed_start(self, error: Exception) -> None:
        home, environment = self.launch.home, self.launch.environment
        if isinstance(error, FermixError):
            last_words(home, environment, str(error), error.hint)
            return
        told = f"{type(error).__name__}: {error}".rstrip(": ")  # the text of an OSError names its file
        last_words(home, environment, f"It could not start: {told}", "fermix logs -n 50", surprise=error)

    def _next_signals(self) -> bytes:
        try:
            socket.wait_read(self.PIPE[0], timeout=_WAIT_S)
            return os.read(self.PIPE[0], 512)
        except (TimeoutError, BlockingIOError):
            return b""

    def _handle_signal(self, number: int) -> None:
        """SIGINT is nothing here: a terminal sends it to arbiter and worker, and the arbiter decides."""
        if number == signal.SIGQUIT:
            log.warning("Ending at once")
            self._finish(0)
        elif number == signal.SIGTERM and self._drain is None:
            self._drain = self._tasks.start(self._drain_and_stop, name="drain")
        elif number == signal.SIGHUP:
            self._is_reload_wanted = not self._is_ready  # what it is made from may be older than the file
            self._tell("reload", self._reload)
        elif number == signal.SIGUSR2:
            self._tell("ripcord", lambda runtime: runtime.ripcord())
        elif number == signal.SIGUSR1:
            stacks = io.StringIO()
            gevent.util.print_run_info(file=stacks)
            log.info("Stacks of all greenlets and threads", extra={"block": stacks.getvalue()})

    def _tell(self, name: str, act: Callable[[RuntimePort], Any]) -> None:
        if self._runtime is not None and self._is_ready:
            self._tasks.start(partial(act, self._runtime), name=name)

    def _drain_and_stop(self) -> None:
        limits = self.launch.settings.runtime
        log.info("Draining for up to %g s", limits.drain_s)
        if (runtime := self._runtime) is not None:
            self._within(limits.drain_s + 1.0, "Draining", lambda: runtime.drain(limits.drain_s))
            self._within(limits.stop_s, "Stopping", runtime.stop)
        log.info("Stopped")
        self._finish(0)

    def _within(self, seconds: float, what: str, work: Callable[[], None]) -> None:
        """Run one stage of the end; the next one comes whatever becomes of it."""
        try:
            with time_limit(seconds, what):
                work()
        except DeadlineExceeded as error:
            log.error("%s", error)
        except Exception:  # the boundary: it ends either way, and what was accepted is in the inbox
            log.exception("%s failed", what)

    def _finish(self, status: int) -> None:
        """End the main loop with this status; the first one stays."""
        if self._exit_status is None:
            self._exit_status = status
            os.write(self.PIPE[1], b"\0")
