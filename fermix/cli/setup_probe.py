"""Tries a provider through a daemon: the one that runs, else a private one in a home of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fermix.cli.door import Door
from fermix.cli.gone import wait_until_gone
from fermix.cli.waiting import Waiting, patiently
from fermix.errors import DaemonLost, FermixError, NotRunning
from fermix.ipc.client import Connection, open_connection
from fermix.paths import Home
from fermix.process.locks import is_locked
from fermix.setup.wizard.port import Attempt, Tried

_PROBE_TIMEOUT_S = 45.0
"""The daemon itself gives up after 30 s."""
_STOP_S = 10.0
_PAUSE_S = 0.02
_TOO_OLD = ("method_unknown", "invalid_params", "daemon_too_old", "starting")


class ProbeDoor:
    """Probes; what a probe needs is made at the first one and gone when the block ends.

    A private daemon gets a home of its own: what is wrong with the owner's, setup may be there to mend,
    and nothing in it is touched before an answer was good.
    """

    def __init__(self, home: Home, *, is_silent: bool) -> None:
        self._home = home
        self._is_silent = is_silent
        self._scratch: Path | None = None

    def __enter__(self) -> ProbeDoor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, attempt: Attempt) -> Tried:
        """What the attempt came to.

        Raises: OwnerError when no daemon could be started, KeyboardInterrupt.
        """
        params: dict[str, Any] = {}
        if attempt.base_url is not None:
            params = {
                "name": attempt.name,
                "base_url": attempt.base_url,
                "vendor": attempt.vendor,
                "model": attempt.model,
                "preferred": list(attempt.preferred),
                "api_key": attempt.key.reveal() if attempt.key is not None else None,
            }
        with Waiting(f"asking {attempt.name}", is_silent=self._is_silent) as waiting:
            return Tried.of(self._running(params, waiting) or self._private(params, waiting))

    def close(self) -> None:
        """End the private daemon, if one was started, and take its home away."""
        scratch, self._scratch = self._scratch, None
        if scratch is None:
            return
        home = Home(scratch)
        try:
            with contextlib.suppress(FermixError), open_connection(home.socket) as connection:
                pid = connection.peer_pid()
                connection.call("stop", {"only_private": True}, _STOP_S)
                wait_until_gone(pid, _STOP_S)
        finally:  # also when Ctrl-C is pressed again meanwhile
            with _deaf_to_ctrl_c():
                _kill(home)
                shutil.rmtree(scratch, ignore_errors=True)

    def _running(self, params: dict[str, Any], waiting: Waiting) -> dict[str, Any] | None:
        """What the home's own daemon says; None when there is none, or it is too old to be asked.

        The model on this machine is only asked where no settings stand in its way.
        """
        if not params:
            return None
        try:
            with open_connection(self._home.socket) as connection:
                return _answer(connection, params, waiting)
        except (NotRunning, DaemonLost):
            return None
        except FermixError as error:
            if error.code in _TOO_OLD:
                return None
            raise

    def _private(self, params: dict[str, Any], waiting: Waiting) -> dict[str, Any]:
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="fermix-setup-"))
        home = Home(self._scratch)
        with Door(home, starts_private=True, is_silent=self._is_silent).open() as connection:
            return _answer(connection, params, waiting)


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _kill(home: Home) -> None:
    """End a private daemon that still runs: it would put back what is removed from its home."""
    with contextlib.suppress(FermixError, ProcessLookupError), open_connection(home.socket) as connection:
        os.kill(connection.peer_pid(), signal.SIGKILL)
    end = time.monotonic() + _STOP_S
    while is_locked(home.lease) and time.monotonic() < end:  # its worker is killed by the kernel
        time.sleep(_PAUSE_S)


def _answer(connection: Connection, params: dict[str, Any], waiting: Waiting) -> dict[str, Any]:
    """Raises: what the daemon refuses, DeadlineExceeded, DaemonLost."""
    given = {name: value for name, value in params.items() if value is not None}
    return patiently(connection, "provider.probe", given, waiting=waiting, timeout_s=_PROBE_TIMEOUT_S)
