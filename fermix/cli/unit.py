"""Starts and stops a home's daemon through its service unit, where one is installed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fermix.cli.log_file import tail_position
from fermix.errors import ToolDenied
from fermix.paths import Home
from fermix.process.proc import ancestors
from fermix.setup.service.manager import Manager, UnitState
from fermix.setup.service.places import find_installed
from fermix.setup.service.systemd import RESTART_S

_LOOK_S = 0.3


def manager_of(home: Home) -> Manager | None:
    """Who drives the home's installed unit; None when no unit is installed for it."""
    found = find_installed(home.root, os.environ)
    return Manager(found.place.scope, os.environ) if found is not None else None


def start_unit(home: Home, manager: Manager) -> UnitStart:
    """Have the unit started, also after failures too many.

    Raises: ManagerUnreachable, ManagerRefused.
    """
    position = tail_position(home.log)
    manager.start()
    return UnitStart(manager, home.log, position)


@dataclass(slots=True)
class UnitStart:
    """A daemon that the service manager starts."""

    manager: Manager
    log: Path
    log_position: int
    _looked_s: float = 0.0

    def ending(self) -> str | None:
        """How it ended; the manager is asked a few times a second."""
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_S:
            return None
        self._looked_s = now_s
        state = self.manager.state()
        if state.sub == "auto-restart":
            return f"{_life_of(state)}; the service tries again every {RESTART_S} s"
        return None if state.is_up else _life_of(state)

    def give_way(self, status: dict[str, Any]) -> None:
        """Without this the unit would be tried again and again beside a daemon that was quicker."""
        state = self.manager.state()
        if state.is_up and state.main_pid != status.get("arbiter_pid"):
            self.manager.stop()


def _life_of(state: UnitState) -> str:
    if state.result == "start-limit-hit":
        return "it ended too often"
    return f"exit code {state.exit_status}" if state.result in ("exit-code", "success") else state.result


def refuse_inside(home: Home, verb: str) -> None:
    """Keep a process that the daemon itself started from ending it, and so itself.

    The daemon would wait for the very turn that runs this command, or be gone before it is started again.
    Raises: ToolDenied.
    """
    try:
        pid = int(home.pid_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    if pid in ancestors(os.getpid())[1:]:
        raise ToolDenied(
            f"This command runs inside the daemon (pid {pid}); it cannot {verb} it from there.",
            hint=f"in a terminal of your own: fermix {verb}",
        )
