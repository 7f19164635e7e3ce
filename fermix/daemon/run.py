"""`fermix run`: checks the home, takes the lease, opens the sockets, then becomes the arbiter."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fermix import __version__, native
from fermix.config.home import prepare_home
from fermix.daemon.app import Runtime
from fermix.daemon.arbiter import DaemonArbiter
from fermix.daemon.endings import FAILED, UNREPAIRABLE, last_words, status_of
from fermix.daemon.exposure import check_exposure
from fermix.daemon.launch import Launch, MakeRuntime
from fermix.daemon.lease import Holder, Lease
from fermix.daemon.listeners import ControlListener, HttpListener
from fermix.daemon.mode import Mode
from fermix.daemon.places import Places
from fermix.daemon.reload import LiveSettings
from fermix.daemon.sections import load_settings
from fermix.errors import FermixError
from fermix.ipc.client import open_connection
from fermix.paths import Home
from fermix.telemetry.logs import start_logs
from fermix.telemetry.terminal import is_watched, occupy_standard_descriptors, tell

log = logging.getLogger(__name__)

_ASK_S = 5.0
"""How long a private daemon may take to answer that it leaves."""


def run(home: Home, mode: str, environment: Mapping[str, str]) -> int:
    """Serve the home until told to stop; the exit status of `fermix run`. `mode` is full or private.

    0 stopped as asked, 78 it cannot start until somebody changes something, 1 everything else.
    """
    return serve(home, Mode(mode), environment, make_runtime=Runtime)


def serve(home: Home, mode: Mode, environment: Mapping[str, str], *, make_runtime: MakeRuntime) -> int:
    """As `run`, with whatever the worker shall run."""
    occupy_standard_descriptors()
    try:
        with ExitStack() as stack:
            launch = _prepare(stack, home, mode, environment, make_runtime)
            _tell_where(launch)
            return _arbitrate(launch)
    except FermixError as error:
        last_words(home, environment, error.message, error.hint)
        return status_of(error)
    except OSError as error:  # a full disk, a read-only home: the owner reads what the system says
        hint = f"Look at it with: ls -ld '{home.root}'; df -h '{home.root}'"
        last_words(home, environment, str(error), hint)
        return FAILED
    except KeyboardInterrupt:  # before the arbiter takes signals
        return FAILED


def _arbitrate(launch: Launch) -> int:
    """The arbiter's whole life; it ends by SystemExit, as gunicorn's does."""
    try:
        DaemonArbiter(launch).run()
    except SystemExit as ending:
        if ending.code in (None, 0):
            return 0
        return UNREPAIRABLE if ending.code == UNREPAIRABLE else FAILED
    return FAILED


def _prepare(
    stack: ExitStack, home: Home, mode: Mode, environment: Mapping[str, str], make_runtime: MakeRuntime
) -> Launch:
    """Everything that can be refused, in an order in which a refused start changes nothing."""
    prepare_home(home)
    settings = load_settings(home, environment)
    if mode is Mode.FULL:
        check_exposure(home, settings.http)
    lease = Lease(home.lease)
    lease.take(
        mode,
        wait_s=settings.runtime.lease_wait_s,
        leave_s=settings.runtime.drain_s + settings.runtime.stop_s,
        ask_to_leave=lambda holder: _ask_to_leave(home, holder),
    )
    stack.callback(lease.release)
    logs = start_logs(home.log, settings.logs, is_terminal=is_watched())
    log.info("fermix %s starts (%s) for %s", __version__, mode, home.root)
    if native.NOTICE:
        log.warning("%s", native.NOTICE)
    stack.enter_context(_pid_file(home.pid_file))
    control = ControlListener.open(home.socket)
    stack.callback(control.close)
    http = None
    if mode is Mode.FULL and settings.http.enabled:
        http = HttpListener(settings.http.host, settings.http.port)
        stack.callback(http.close)
    places = Places(home.kept, (home.lease, home.pid_file, home.socket))
    stack.callback(places.close)
    native.become_subreaper()
    native.set_dumpable(False)
    return Launch(
        home, mode, environment, LiveSettings(settings), logs, control, http, make_runtime, places
    )


def _ask_to_leave(home: Home, holder: Holder) -> None:
    """Ask a private daemon to make room; one that does not answer keeps the lease and is named then."""
    with contextlib.suppress(FermixError), open_connection(home.socket, timeout_s=_ASK_S) as connection:
        connection.call("stop", {"only_private": True}, _ASK_S)


@contextmanager
def _pid_file(path: Path) -> Iterator[None]:
    """`fermix.pid` with the arbiter's pid while the block runs."""
    written = path.with_name(
        f".{path.name}.new"
    )  # one name: the lease is held, and a kill leaves at most this
    written.write_text(f"{os.getpid()}\n", encoding="ascii")
    written.chmod(0o600)
    written.replace(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _tell_where(launch: Launch) -> None:
    """One line for whoever started it in the foreground."""
    scheme = "https" if launch.settings.http.tls_certificate else "http"
    places = [f"{scheme}://{launch.http}"] if launch.http else []
    places.append(str(launch.control.path))
    log.info("Listens on %s", ", ".join(places))
    tell(f"fermix {__version__} listens on {' and '.join(places)}. Stop it with Ctrl-C or: fermix stop")
