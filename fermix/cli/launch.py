"""Starts a daemon that outlives the command, and waits until it answers."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fermix.cli.log_file import read_from, tail_position
from fermix.cli.waiting import Waiting
from fermix.errors import FermixError, OwnerError
from fermix.ipc.client import open_connection
from fermix.paths import Home
from fermix.process.locks import is_locked
from fermix.process.program import own_command, own_variables

START_TIMEOUT_S = 60.0
"""Longest a daemon may take until it answers: a cold cache and a recovery after a crash included."""

COMES_AND_GOES = ("not_running", "daemon_lost", "deadline", "not_ready", "starting")
"""How a daemon that is not there yet, or not any more, answers."""

_PAUSE_S = 0.05
_TAKE_BACK_S = 2.0
_LEAST_ROOM_BYTES = 65_536
_LOG_LINES = 8


class Start(Protocol):
    """A daemon on its way up."""

    @property
    def log(self) -> Path:
        """Where it writes what keeps it from starting."""
        ...

    @property
    def log_position(self) -> int:
        """Where its own lines begin."""
        ...

    def ending(self) -> str | None:
        """How it ended, in words; None while it may still come."""
        ...

    def give_way(self, status: dict[str, Any]) -> None:
        """Another one may have been ready first: take this one back if so."""
        ...


@dataclass(frozen=True, slots=True)
class Launched:
    """A process of this command's own making."""

    process: subprocess.Popen[bytes]
    log: Path
    log_position: int

    def ending(self) -> str | None:
        exit_code = self.process.poll()
        if exit_code is None:
            return None
        return f"exit code {exit_code}" if exit_code >= 0 else f"signal {-exit_code}"

    def give_way(self, status: dict[str, Any]) -> None:
        """Left alone, a daemon that lost the race might still win it when the other one stops."""
        if status.get("arbiter_pid") != self.process.pid:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_TAKE_BACK_S)


def launch(home: Home, *words: str) -> Launched:
    """Start `fermix run` with these words, detached from this terminal, talking to the log.

    Raises: OwnerError when the home or the program cannot be used.
    """
    try:
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.logs.mkdir(mode=0o700, exist_ok=True)
        log = os.open(home.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise OwnerError(
            f"The home '{home.root}' cannot be written: {_reason(exc)}.",
            hint=_repair(exc, home),
        ) from exc
    position = tail_position(home.log)
    argv = [*own_command(os.environ), "run", *words]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.root,
            env={**os.environ, **own_variables(os.environ), "FERMIX_HOME": str(home.root)},
            start_new_session=True,
        )
    except OSError as exc:
        raise OwnerError(f"The daemon '{argv[0]}' cannot be started: {exc.strerror}.") from exc
    finally:
        os.close(log)
    return Launched(process, home.log, position)


def _reason(exc: OSError) -> str:
    return f"'{exc.filename}' is not a folder" if isinstance(exc, FileExistsError) else str(exc.strerror)


def _repair(exc: OSError, home: Home) -> str:
    if isinstance(exc, FileExistsError) and exc.filename == str(home.logs):
        place = shlex.quote(str(home.logs))
        return f"mv {place} {place}.aside"
    return "set FERMIX_HOME to a folder of yours"


def wait_until_ready(home: Home, launched: Start, waiting: Waiting, *, timeout_s: float) -> dict[str, Any]:
    """The daemon's status as soon as it is ready.

    Another daemon that was started at the same moment and took the lease is as good.

    Raises: OwnerError (`start_failed`) with the last lines it wrote when it ended or took too long.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        waiting.tick()
        status = _status(home)
        if status is not None and status.get("state") != "starting":
            launched.give_way(status)
            return status
        ending = launched.ending()
        if ending is not None and status is None and not is_locked(home.lease):
            raise _start_failed(f"The daemon ended while it started ({ending}).", launched)
        time.sleep(_PAUSE_S)
    raise _start_failed(f"The daemon was not ready within {timeout_s:.3g} s.", launched)


def _status(home: Home) -> dict[str, Any] | None:
    """What the daemon says of itself; None while none answers."""
    try:
        with open_connection(home.socket, timeout_s=1.0) as connection:
            return connection.call("status", {}, 1.0)
    except FermixError as error:
        if error.code in COMES_AND_GOES:
            return None
        raise


def _start_failed(message: str, launched: Start) -> OwnerError:
    """The daemon's own words and hint for it where it had some, else the last lines of its log."""
    lines = [line for line in read_from(launched.log, launched.log_position) if line.strip()]
    spoken = [number for number, line in enumerate(lines) if line.startswith("fermix: ")]
    hint = "fermix logs -n 50"
    if spoken:
        first, *rest = lines[spoken[-1] :]
        hints = [line.strip() for line in itertools.takewhile(lambda line: line.startswith("  "), rest)]
        shown, hint = [first.removeprefix("fermix: ")], "\n  ".join(hints) or hint
    elif not lines and _is_full(launched.log.parent):
        shown, hint = (
            ["It could not even say why: the disk of its home is full."],
            f"df -h '{launched.log.parent}'",
        )
    else:
        shown = lines[-_LOG_LINES:]
    told = OwnerError("\n  ".join([message, *shown]), hint=hint)
    told.code = "start_failed"
    return told


def _is_full(folder: Path) -> bool:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < _LEAST_ROOM_BYTES
