"""The process that owns the sockets and keeps exactly one worker alive.

A subclass of gunicorn's arbiter (27). Differences: it takes signals by `sigtimedwait` instead of handlers,
so nothing of gevent runs in it and a dead worker is noticed at once; one worker, whatever is asked; HUP,
USR1 and USR2 go on to the worker; a worker that does not beat is killed without grace; workers that keep
dying are restarted with pauses; the sockets stay open until the last worker is gone.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import time
from functools import partial
from types import FrameType
from typing import Any, ClassVar

from gevent.os import fork_gevent
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer

from fermix.daemon.endings import BOOT_FAILED, FAILED, UNREPAIRABLE
from fermix.daemon.launch import Launch
from fermix.daemon.reload import Commit, Reload, Step
from fermix.daemon.restarts import RestartPauses
from fermix.daemon.sections import Settings, load_settings
from fermix.daemon.serverlog import ServerLog
from fermix.daemon.worker import REFUSED, RELOADED, RuntimeWorker
from fermix.errors import ConfigError
from fermix.telemetry.logs import change_logs

log = logging.getLogger(__name__)

_LOOK_S = 1.0
"""Longest wait of the main loop; how late a silent worker may be noticed."""

_QUICK_STOP_S = 2.0
"""How long a worker gets after a second request to stop."""

_SPAWN_AGAIN_S = 1.0
"""How long a machine that has no room for a worker is left alone."""

_REAP_S = 1.0
"""How long a killed worker may take to be gone."""

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
FORWARDED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
IGNORED = (signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH)
TAKEN = {*STOPS, *FORWARDED, *IGNORED, RELOADED, REFUSED, signal.SIGCHLD}


class DaemonApplication(BaseApplication):
    """gunicorn's view of our program: its configuration, from no command line, file or environment."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        super().__init__()

    def load_config(self) -> None:
        http, runtime = self.launch.settings.http, self.launch.settings.runtime
        memory_folder = "/dev/shm"  # noqa: S108 (only to keep heartbeats off the disk; the file is unlinked at once)
        values: dict[str, Any] = {
            "workers": 1,
            "worker_class": RuntimeWorker,
            "logger_class": ServerLog,
            "worker_tmp_dir": memory_folder
            if os.access(memory_folder, os.W_OK)
            else str(self.launch.home.root),
            "worker_connections": http.connections,
            "keepalive": http.idle_s,
            "timeout": max(1, round(runtime.hub_killed_s)),
            "graceful_timeout": max(1, round(runtime.drain_s)),
            "control_socket_disable": True,
            "forwarded_allow_ips": "",
            "proxy_allow_ips": "",
            "limit_request_line": 4094,
            "limit_request_fields": 64,
            "proc_name": "fermix",
        }
        for name, value in values.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Never asked for: the worker builds its own application."""
        raise NotImplementedError


class DaemonArbiter(Arbiter):
    """Runs until it is told to stop; see the module."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(DaemonApplication(launch))
        self.launch = launch
        self.pid = os.getpid()
        runtime = launch.settings.runtime
        self._looked_s = time.monotonic()
        self._lenient_until_s = 0.0
        self._pauses = RestartPauses(limit=runtime.restarts, window_s=runtime.restart_window_s)
        self._next_spawn_s = 0.0
        self._has_served = False
        self._is_stopping = False
        self._is_reload_open = False
        """Whether the worker was asked to reload and has not answered."""
        self._inherited_mask: set[signal.Signals | int] = set()
        steps = (
            *launch.exposure_steps(),
            Step(("logs",), lambda settings: partial(change_logs, launch.logs, settings.logs)),
            Step(("runtime",), self._get_ready),
        )
        self._reload = Reload(launch.live, launch.home, launch.environment, steps=steps)

    SIG_NAMES: ClassVar = {**Arbiter.SIG_NAMES, RELOADED: "reloaded", REFUSED: "refused"}

    # One worker, whatever gunicorn or a signal wants.
    num_workers = property(lambda self: 1, lambda self, value: None)

    def start(self) -> None:
        self.init_signals()
        log.info("Arbiter started")
        # What is imported by now is shared with every worker; collecting would touch and so copy it.
        gc.collect()
        gc.freeze()

    def init_signals(self) -> None:
        self._inherited_mask = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)

    def signal(self, sig: int, frame: FrameType | None) -> None:
        """Unused: signals are blocked and taken in `wait_for_signals`."""

    def wait_for_signals(self, timeout: float | None = None) -> list[int]:
        """The signals that came; waits for the first one until it is time to look at the worker."""
        wait_s = self._look_s if timeout is None else min(timeout, self._look_s)
        if not self.WORKERS:
            wait_s = min(wait_s, max(0.0, self._next_spawn_s - time.monotonic()))
        taken: list[int] = []
        info = signal.sigtimedwait(TAKEN, wait_s)
        while info is not None:
            taken.append(info.si_signo)
            info = signal.sigtimedwait(TAKEN, 0)
        return taken

    def handle_hup(self) -> None:
        """Have the worker reload. What it refuses does not count for the next one either."""
        try:
            load_settings(self.launch.home, self.launch.environment, is_consistent=True)
        except ConfigError as error:
            log.error("The settings stay as they are: %s", error)
            return
        self._is_reload_open = True
        self.kill_workers(signal.SIGHUP)

    def handle_reloaded(self) -> None:
        """The worker took up other settings: the same here."""
        self._is_reload_open = False
        try:
            outcome = self._reload.run()
        except ConfigError as error:
            log.error("The settings stay as they are: %s", error)
        else:
            log.debug("In the arbiter: %s", outcome)

    def handle_refused(self) -> None:
        """The worker could not work with them, and has said why."""
        self._is_reload_open = False

    def _get_ready(self, settings: Settings) -> Commit:
        runtime = settings.runtime
        return partial(self._pauses.limit, runtime.restarts, runtime.restart_window_s)

    @property
    def _hub_killed_s(self) -> float:
        return self.launch.settings.runtime.hub_killed_s

    @property
    def _look_s(self) -> float:
        return min(_LOOK_S, self._hub_killed_s / 4)

    def handle_usr1(self) -> None:
        self.kill_workers(signal.SIGUSR1)

    def handle_usr2(self) -> None:
        self.kill_workers(signal.SIGUSR2)

    def handle_int(self) -> None:
        raise StopIteration

    def handle_ttin(self) -> None:
        """Ignored: there is one worker."""

    handle_ttou = handle_ttin
    handle_winch = handle_ttin

    def manage_workers(self) -> None:
        self.launch.places.look()
        if not self.WORKERS and not self._is_stopping and time.monotonic() >= self._next_spawn_s:
            try:
                self.spawn_worker()
            except OSError as error:  # out of processes, descriptors or memory; they come back
                log.error("A worker cannot be started: %s", error)
                self._next_spawn_s = time.monotonic() + _SPAWN_AGAIN_S

    def spawn_worker(self) -> int:
        if self._is_reload_open:  # the last worker is gone without an answer
            self.handle_reloaded()
        self.worker_age += 1
        server_log: Any = self.log
        worker = RuntimeWorker(
            self.worker_age, self.pid, [], self.app, round(self._hub_killed_s), self.cfg, server_log
        )
        worker.tmp.notify()  # its life counts from here, should it hang before its first beat
        pid = fork_gevent()
        if pid == 0:
            worker.live(self.launch, self._inherited_mask)
        self.WORKERS[pid] = worker
        log.info("Worker %d started", pid)
        return pid

    def murder_workers(self) -> None:
        """Kill a worker that has not beaten for too long, without grace: its hub cannot answer a signal."""
        now_s = time.monotonic()
        if now_s - self._looked_s > 2 * _LOOK_S:
            # This process did not run either: the group was stopped or the machine had no time for it.
            self._lenient_until_s = now_s + self._hub_killed_s
        self._looked_s = now_s
        if now_s < self._lenient_until_s:
            return
        for pid, worker in list(self.WORKERS.items()):
            silence_s = now_s - worker.tmp.last_update()
            if silence_s > self._hub_killed_s and not worker.aborted:
                log.critical(
                    "Worker %d did not beat for %.1f s and is killed; see its stacks above", pid, silence_s
                )
                worker.aborted = True
                self.kill_worker(pid, signal.SIGKILL)

    def reap_workers(self) -> None:
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                return
            if ended is None:
                return
            worker = self.WORKERS.pop(ended.si_pid, None)
            if not isinstance(worker, RuntimeWorker):
                continue  # an orphan of the worker's that was handed to this subreaper
            was_ready = worker.was_ready
            worker.tmp.close()
            self._has_served = self._has_served or was_ready
            if not self._is_stopping:
                self._handle_death(ended, was_ready=was_ready)

    def _handle_death(self, ended: os.waitid_result, *, was_ready: bool) -> None:
        """Decide when the next worker starts, or that none can."""
        if ended.si_code == os.CLD_EXITED:
            log.error("Worker %d exited with status %d", ended.si_pid, ended.si_status)
            if ended.si_status in (BOOT_FAILED, UNREPAIRABLE) and not self._has_served:
                status = UNREPAIRABLE if ended.si_status == UNREPAIRABLE else FAILED
                raise HaltServer("the worker could not start; its reason stands above", status)
        else:
            log.error("Worker %d was ended by %s", ended.si_pid, signal.Signals(ended.si_status).name)
        now_s = time.monotonic()
        pause_s = self._pauses.after_death(now_s, was_ready=was_ready)
        self._next_spawn_s = now_s + pause_s
        if pause_s:
            log.error("Workers keep dying; the next one starts in %.1f s", pause_s)

    def stop(self, graceful: bool = True) -> None:
        """Have the worker drain, then end; the sockets stay open until it is gone."""
        self._is_stopping = True
        runtime = self.launch.settings.runtime
        self.kill_workers(signal.SIGTERM if graceful else signal.SIGQUIT)
        limit_s = time.monotonic() + (runtime.drain_s + runtime.stop_s if graceful else _QUICK_STOP_S)
        while self.WORKERS and time.monotonic() < limit_s:
            for number in self.wait_for_signals(limit_s - time.monotonic()):
                if number in STOPS:
                    log.warning("Asked to stop again: the worker ends now")
                    self.kill_workers(signal.SIGQUIT)
                    limit_s = min(limit_s, time.monotonic() + _QUICK_STOP_S)
                elif number in FORWARDED:
                    self.kill_workers(number)
            self.reap_workers()
            self.murder_workers()
        if self.WORKERS:
            log.error("The worker did not stop in time and is killed")
            self.kill_workers(signal.SIGKILL)
            limit_s = time.monotonic() + _REAP_S
            while self.WORKERS and time.monotonic() < limit_s:
                self.wait_for_signals(0.1)
                self.reap_workers()

    def halt(self, reason: str | None = None, exit_status: int = 0) -> None:
        self.stop()
        if reason is not None:
            log.error("Stopping: %s", reason)
        log.info("Arbiter stopped")
        sys.exit(exit_status)
