"""Tries a provider through a daemon: the one that runs, else a private one in a home of its own."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from fermix.cli.door import Door
from fermix.cli.gone import wait_until_gone
from fermix.cli.waiting import Waiting
from fermix.errors import DaemonLost, DeadlineExceeded, FermixError, NotRunning
from fermix.ipc.client import Connection, Result, open_connection
from fermix.paths import Home
from fermix.setup.wizard.port import Attempt, Tried

_PROBE_TIMEOUT_S = 45.0
"""The daemon itself gives up after 30 s."""
_TICK_S = 0.1
_STOP_S = 10.0
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
        try:
            with contextlib.suppress(FermixError), open_connection(Home(scratch).socket) as connection:
                pid = connection.peer_pid()
                connection.call("stop", {"only_private": True}, _STOP_S)
                wait_until_gone(pid, _STOP_S)
        finally:  # also when Ctrl-C is pressed again meanwhile
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


def _answer(connection: Connection, params: dict[str, Any], waiting: Waiting) -> dict[str, Any]:
    """Raises: what the daemon refuses, DeadlineExceeded, DaemonLost."""
    given = {name: value for name, value in params.items() if value is not None}
    stream = connection.stream("provider.probe", given, 10.0)
    end = time.monotonic() + _PROBE_TIMEOUT_S
    while time.monotonic() < end:
        answer = stream.read(_TICK_S)
        if isinstance(answer, Result):
            return answer.data
        waiting.tick()
    raise DeadlineExceeded(
        f"The daemon did not answer within {_PROBE_TIMEOUT_S:.0f} s.", hint="fermix logs -n 20"
    )
