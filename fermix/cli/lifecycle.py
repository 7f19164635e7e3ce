"""`fermix start`, `stop` and `restart`: the daemon as a whole."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

import click

from fermix.cli.launch import START_TIMEOUT_S, launch, wait_until_ready
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.status_report import main_pid
from fermix.cli.terminal import say
from fermix.cli.waiting import Waiting
from fermix.errors import DaemonLost, DeadlineExceeded, NotRunning, OwnerError
from fermix.ipc.client import Connection, open_connection
from fermix.paths import Home
from fermix.process.proc import look

STOP_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 5.0
_PAUSE_S = 0.05

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
    status = _status(home)
    if status is not None and status.get("mode") != "private":
        _print_running(status, "already running", as_json)
        return
    _print_running(_start(home, as_json), "running", as_json)


@click.command(epilog=examples("fermix stop", "fermix stop --timeout 5 --force"))
@timeout_option
@force_option
@json_option
def stop(timeout_s: float, force: bool, as_json: bool) -> None:
    """Stop the daemon after its running turns.

    Exit status 3 when it does not run.
    """
    pid = _stop(own_home(), timeout_s, force=force, as_json=as_json)
    if as_json:
        print_json({"stopped": True, "pid": pid})
    else:
        print(f"fermix: stopped (pid {pid})")


@click.command(epilog=examples("fermix restart", "fermix restart --timeout 5"))
@timeout_option
@force_option
@json_option
def restart(timeout_s: float, force: bool, as_json: bool) -> None:
    """Stop the daemon if it runs, then start it."""
    home = own_home()
    with contextlib.suppress(NotRunning):  # what is asked for is a running daemon
        _stop(home, timeout_s, force=force, as_json=as_json)
    _print_running(_start(home, as_json), "running", as_json)


def _status(home: Home) -> dict[str, Any] | None:
    """What the daemon says of itself; None when none runs."""
    try:
        with open_connection(home.socket) as connection:
            return connection.call("status", {}, _ANSWER_TIMEOUT_S)
    except (NotRunning, DaemonLost):
        return None


def _start(home: Home, as_json: bool) -> dict[str, Any]:
    """Start a full daemon, a private one gives way to it; its status.

    Raises: OwnerError (`start_failed`) with the last lines of its log.
    """
    with Waiting("starting fermix", is_silent=as_json) as waiting:
        _end_private(home, waiting)
        launched = launch(home)
        return wait_until_ready(home, launched, waiting, timeout_s=START_TIMEOUT_S)


def _end_private(home: Home, waiting: Waiting) -> None:
    status = _status(home)
    if status is None or status.get("mode") != "private":
        return
    with open_connection(home.socket) as connection:
        connection.call("stop", {"only_private": True}, _ANSWER_TIMEOUT_S)
        pid = connection.peer_pid()
    _wait_until_gone(pid, time.monotonic() + STOP_TIMEOUT_S, waiting)


def _stop(home: Home, timeout_s: float, *, force: bool, as_json: bool) -> int:
    """Stop the daemon; the process that is gone.

    Raises: NotRunning, OwnerError (`stop_timeout`).
    """
    deadline = time.monotonic() + timeout_s
    with open_connection(home.socket) as connection:
        pid = connection.peer_pid()
        _ask_to_stop(connection, pid, as_json)
    with Waiting("stopping fermix", is_silent=as_json) as waiting:
        if _wait_until_gone(pid, deadline, waiting):
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
        _wait_until_gone(pid, time.monotonic() + _ANSWER_TIMEOUT_S, waiting)
    return pid


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


def _wait_until_gone(pid: int, deadline: float, waiting: Waiting) -> bool:
    """Whether the process ended before `deadline`."""
    while _is_alive(pid):
        if time.monotonic() >= deadline:
            return False
        waiting.tick()
        time.sleep(_PAUSE_S)
    return True


def _is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not yet collected by its parent does not."""
    found = look(pid)
    return found is not None and not found.is_zombie


def _print_running(status: dict[str, Any], word: str, as_json: bool) -> None:
    if as_json:
        print_json(status)
    else:
        print(f"fermix: {word} (pid {main_pid(status)}, version {status.get('version')})")
