"""Asks the service manager: `systemctl` and `loginctl`, as a person would type them.

Source: systemctl(1), org.freedesktop.systemd1(5) (properties of units), loginctl(1).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fermix.errors import ManagerRefused, ManagerUnreachable
from fermix.setup.service.places import UNIT_NAME, Scope

_CALL_S = 30.0
_UNREACHABLE = ("failed to connect to bus", "has not been booted with systemd", "no medium found")
_REFUSED = ("authentication", "access denied", "permission denied", "not permitted")
_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "MainPID",
    "Result",
    "ExecMainStatus",
    "NRestarts",
    "NeedDaemonReload",
    "Job",
)


@dataclass(frozen=True, slots=True)
class UnitState:
    """What the service manager says of the unit; empty words where it says nothing."""

    active: str
    """active, activating, deactivating, inactive or failed."""
    sub: str
    """More exactly, as `running` or `auto-restart`."""
    main_pid: int | None
    result: str
    """Why the last life ended, as `exit-code` or `start-limit-hit`."""
    exit_status: int
    restarts: int
    is_stale: bool
    """The file was changed since the manager read it."""
    has_job: bool
    """A start or stop was asked for and waits, as for the network."""

    @property
    def is_up(self) -> bool:
        """Whether it runs, comes, goes, or waits to be started again."""
        return self.has_job or self.active in ("active", "activating", "reloading", "deactivating")


class Manager:
    """The service manager of a scope."""

    def __init__(self, scope: Scope, environment: Mapping[str, str]) -> None:
        self.scope = scope
        self._environment = _with_runtime_folder(environment)
        # a question at the terminal would wait behind the words a person waits at
        self._systemctl = ("systemctl", *(("--user",) if scope is Scope.USER else ()), "--no-ask-password")

    def typed(self, verb: str) -> str:
        """The command a person types for it."""
        words = "systemctl --user" if self.scope is Scope.USER else "sudo systemctl"
        return f"{words} {verb} {UNIT_NAME.removesuffix('.service')}"

    def reload(self) -> None:
        """Have the units read again. Raises: ManagerUnreachable, ManagerRefused."""
        self._ask("daemon-reload", hint=self.typed("daemon-reload").rpartition(" ")[0])

    def start(self) -> None:
        """Begin to start the unit, also after failures too many; returns before it runs.

        Raises: ManagerUnreachable, ManagerRefused.
        """
        self._forget_failures()
        self._ask("start", "--no-block", UNIT_NAME, hint=self.typed("start"))

    def stop(self, *, waits_s: float | None = None) -> None:
        """Begin to stop the unit; with `waits_s`, return when it has ended.

        Raises: ManagerUnreachable, ManagerRefused.
        """
        waits = ("--no-block",) if waits_s is None else ()
        self._ask("stop", *waits, UNIT_NAME, hint=self.typed("stop"), timeout_s=waits_s or _CALL_S)

    def _forget_failures(self) -> None:
        """Without this a unit that failed too often is not started any more, whoever asks."""
        self._call((*self._systemctl, "reset-failed", UNIT_NAME), _CALL_S)

    def state(self) -> UnitState:
        """How the unit is. Raises: ManagerUnreachable, ManagerRefused."""
        properties = ",".join(_PROPERTIES)
        said = self._ask("show", UNIT_NAME, f"--property={properties}", hint=self.typed("status"))
        told = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        return UnitState(
            active=told.get("ActiveState", ""),
            sub=told.get("SubState", ""),
            main_pid=_number(told.get("MainPID")) or None,
            result=told.get("Result", ""),
            exit_status=_number(told.get("ExecMainStatus")),
            restarts=_number(told.get("NRestarts")),
            is_stale=told.get("NeedDaemonReload") == "yes",
            has_job=_number(told.get("Job")) > 0,
        )

    def lingers(self, user: str) -> bool | None:
        """Whether the user's services run while nobody is logged in; None when nobody knows."""
        done = self._call(("loginctl", "show-user", user, "--property=Linger", "--value"), _CALL_S)
        if done is not None and done.returncode == 0:
            return done.stdout.strip() == "yes"
        if Path("/var/lib/systemd/linger").is_dir():  # a user who is not logged in is unknown to it
            return Path("/var/lib/systemd/linger", user).exists()
        return None

    def let_linger(self, user: str) -> bool:
        """Have the user's services run while nobody is logged in; whether that was allowed."""
        done = self._call(("loginctl", "--no-ask-password", "enable-linger", user), _CALL_S)
        return done is not None and done.returncode == 0

    def _ask(self, *words: str, hint: str, timeout_s: float = _CALL_S) -> str:
        """What systemctl printed."""
        done = self._call((*self._systemctl, *words), timeout_s)
        if done is None:
            raise ManagerUnreachable("There is no systemctl here; expected a system with systemd.")
        if done.returncode == 0:
            return done.stdout
        said = (" ".join(done.stderr.split()) or f"exit status {done.returncode}").rstrip(".")
        if any(sign in said.lower() for sign in _UNREACHABLE):
            raise ManagerUnreachable(f"The {self.scope} service manager cannot be reached: {said}.")
        needs = "; it needs more rights" if any(sign in said.lower() for sign in _REFUSED) else ""
        raise ManagerRefused(f"'systemctl {words[0]}' was refused{needs}: {said}.", hint=hint)

    def _call(self, words: tuple[str, ...], timeout_s: float) -> subprocess.CompletedProcess[str] | None:
        """None when there is no such program."""
        try:
            return subprocess.run(
                words,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except FileNotFoundError:
            return None
        except subprocess.TimeoutExpired as exc:
            raise ManagerRefused(
                f"'{' '.join(words)}' was not done within {timeout_s:.3g} s.", hint=self.typed("status")
            ) from exc


def _with_runtime_folder(environment: Mapping[str, str]) -> dict[str, str]:
    """After `su` or in a job of cron the way to the user's own manager is not named."""
    usual = f"/run/user/{os.getuid()}"
    named = environment.get("XDG_RUNTIME_DIR") or (usual if Path(usual).is_dir() else None)
    return {**environment, "LC_ALL": "C", **({"XDG_RUNTIME_DIR": named} if named else {})}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
