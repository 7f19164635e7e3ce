"""`fermix start`, `stop` and `restart`: the daemon as a whole."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

import click

from fermix.cli.gone import wait_until_gone
from fermix.cli.launch import COMES_AND_GOES, START_TIMEOUT_S, Start, launch, wait_until_ready
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.status_report import main_pid, service_facts
from fermix.cli.terminal import say
from fermix.cli.unit import manager_of, refuse_inside, start_unit
from fermix.cli.waiting import Waiting
from fermix.errors import (
    DaemonLost,
    DeadlineExceeded,
    FermixError,
    ManagerRefused,
    ManagerUnreachable,
    NotRunning,
    OwnerError,
)
from fermix.ipc.client import Connection, open_connection
from fermix.paths import Home
from fermix.setup.service.manager import UnitState

STOP_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 5.0

timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=STOP_TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="How long running turns may take to finish.",
)
force_option = click.option(
    "--force", is_flag=True, help="Kill it when it is still there after the timeout."
)


@click.command(epilog=examples("fermix start", "fermix start --json"))
@json_option
def start(as_json: bool) -> None:
    """Start the daemon in the background; does nothing when it runs."""
    home = own_home()
    status = status_of(home)
    if status is not None and status.get("mode") != "private":
        print_running(home, status, "already running", as_json)
        return
    print_running(home, bring_up(home, as_json), "running", as_json)


@click.command(epilog=examples("fermix stop", "fermix stop --timeout 5 --force"))
@timeout_option
@force_option
@json_option
def stop(timeout_s: float, force: bool, as_json: bool) -> None:
    """Stop the daemon after its running turns.

    Exit status 3 when it does not run.
    """
    home = own_home()
    refuse_inside(home, "stop")
    pid = bring_down(home, timeout_s, force=force, as_json=as_json)
    if as_json:
        print_json({"stopped": True, "pid": pid})
    elif pid is None:
        print("fermix: stopped (it waited to be started again)")
    else:
        print(f"fermix: stopped (pid {pid})")


@click.command(epilog=examples("fermix restart", "fermix restart --timeout 5"))
@timeout_option
@force_option
@json_option
def restart(timeout_s: float, force: bool, as_json: bool) -> None:
    """Stop the daemon if it runs, then start it."""
    home = own_home()
    refuse_inside(home, "restart")
    with contextlib.suppress(NotRunning):  # what is asked for is a running daemon
        bring_down(home, timeout_s, force=force, as_json=as_json, to_restart=True)
    print_running(home, bring_up(home, as_json), "running", as_json)


def status_of(home: Home) -> dict[str, Any] | None:
    """What the daemon says of itself; None when none runs, or one is still on its way up."""
    try:
        with open_connection(home.socket) as connection:
            return connection.call("status", {}, _ANSWER_TIMEOUT_S)
    except FermixError as error:
        if error.code in COMES_AND_GOES:
            return None
        raise


def bring_up(home: Home, as_json: bool) -> dict[str, Any]:
    """Start a full daemon, through its unit where one is installed; its status.

    A private daemon gives way to it. One that is warming up already is waited for.
    Raises: OwnerError (`start_failed`) with the last lines of its log, ManagerRefused.
    """
    with Waiting("starting fermix", is_silent=as_json) as waiting:
        _end_private(home, waiting)
        started = _begin(home, as_json)
        return wait_until_ready(home, started, waiting, timeout_s=START_TIMEOUT_S)


def _begin(home: Home, as_json: bool) -> Start:
    manager = manager_of(home)
    if manager is None:
        return launch(home)
    try:
        return start_unit(home, manager)
    except ManagerUnreachable as error:
        if not as_json:
            say(f"fermix: {error.message} It is started without its service.")
        return launch(home)


def _end_private(home: Home, waiting: Waiting) -> None:
    status = status_of(home)
    if status is None or status.get("mode") != "private":
        return
    with open_connection(home.socket) as connection:
        connection.call("stop", {"only_private": True}, _ANSWER_TIMEOUT_S)
        pid = connection.peer_pid()
    wait_until_gone(pid, STOP_TIMEOUT_S, tick=waiting.tick)


def bring_down(
    home: Home, timeout_s: float, *, force: bool, as_json: bool, to_restart: bool = False
) -> int | None:
    """Stop the daemon, through its unit where it runs from one; the process that is gone.

    None when the service manager waited to start it again.
    to_restart: whether it stays as it is when its unit could not be started again either.
    Raises: NotRunning, OwnerError (`stop_timeout`), ManagerRefused.
    """
    deadline = time.monotonic() + timeout_s
    pid: int | None
    try:
        with open_connection(home.socket) as connection:
            pid = connection.peer_pid()
            if _stop_unit(home, pid, to_restart=to_restart) is None:
                _ask_to_stop(connection, pid, as_json)
    except NotRunning:
        state = _stop_unit(home, None, to_restart=to_restart)
        if state is None:
            raise
        pid = state.main_pid
    if pid is None:
        return None
    with Waiting("stopping fermix", is_silent=as_json) as waiting:
        if wait_until_gone(pid, deadline - time.monotonic(), tick=waiting.tick):
            return pid
        if not force:
            told = OwnerError(
                f"The daemon (pid {pid}) still runs after {timeout_s:.3g} s; it goes on stopping.",
                hint="fermix stop --force kills it",
            )
            told.code = "stop_timeout"
            raise told
        waiting.clear()
        if not as_json:
            say(f"fermix: still running after {timeout_s:.3g} s, killing it (pid {pid})")
        os.kill(pid, signal.SIGKILL)
        wait_until_gone(pid, _ANSWER_TIMEOUT_S, tick=waiting.tick)
    return pid


def _stop_unit(home: Home, pid: int | None, *, to_restart: bool) -> UnitState | None:
    """Tell the service manager to stop the unit if it runs as `pid`, or at all; how the unit was.

    None when it is not the unit that runs, or when the manager may not be told: asked over its socket
    the daemon ends cleanly, and that is not restarted.
    """
    manager = manager_of(home)
    if manager is None:
        return None
    try:
        state = manager.state()
        if not state.is_up or (pid is not None and pid != state.main_pid):
            return None
        manager.stop()
    except ManagerRefused as error:
        if pid is None or to_restart:
            raise ManagerRefused(
                error.message, hint=manager.typed("restart" if to_restart else "stop")
            ) from error
        return None
    except ManagerUnreachable:
        return None
    return state


def _ask_to_stop(connection: Connection, pid: int, as_json: bool) -> None:
    """Over the socket; when nobody answers there, by a signal to the process that listens."""
    try:
        connection.call("stop", {}, _ANSWER_TIMEOUT_S)
    except DaemonLost:
        return  # it was quicker than its answer
    except DeadlineExceeded:
        if not as_json:
            say(f"fermix: the daemon does not answer, sending SIGTERM to its supervisor (pid {pid})")
        os.kill(pid, signal.SIGTERM)


def print_running(home: Home, status: dict[str, Any], word: str, as_json: bool) -> None:
    """Say which daemon runs, and whether a service does it."""
    service = service_facts(home, status)
    if as_json:
        print_json({**status, **({"service": service} if service else {})})
        return
    how = f" as the {service['scope']} service" if service and service["runs_it"] else ""
    print(f"fermix: {word}{how} (pid {main_pid(status)}, version {status.get('version')})")
