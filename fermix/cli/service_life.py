"""Has the service manager know an installed unit, run the daemon from it, and forget it again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from fermix.cli.lifecycle import STOP_TIMEOUT_S, bring_down, bring_up, status_of
from fermix.cli.status_report import main_pid
from fermix.cli.unit import refuse_inside
from fermix.cli.waiting import Waiting
from fermix.errors import ManagerRefused, ManagerUnreachable, ServiceError
from fermix.setup.service.manager import Manager, UnitState
from fermix.setup.service.places import Scope
from fermix.setup.service.service import Change, Service


def enliven(
    service: Service, change: Change, *, starts: bool, restart: bool, as_json: bool
) -> Mapping[str, Any]:
    """Have the service manager know the unit, and the daemon run from it."""
    manager = Manager(service.place.scope, os.environ)
    try:
        manager.reload()
        lingers, notes = _linger(service, manager)
        if not starts:
            return {"lingers": lingers, "notes": notes}
        running, more = _run(service, manager, change, restart=restart, as_json=as_json)
    except ManagerUnreachable as error:
        when = "login" if service.place.scope is Scope.USER else "boot"
        return {"notes": [f"{error.message} The service starts at the next {when}."]}
    return {"lingers": lingers, "running": running, "notes": [*notes, *more]}


def _run(
    service: Service, manager: Manager, change: Change, *, restart: bool, as_json: bool
) -> tuple[dict[str, Any] | None, list[str]]:
    """The status of the daemon that runs from the unit afterwards, and what is still to be done."""
    home = service.home
    status = status_of(home)
    is_full = status is not None and status.get("mode") != "private"
    if status is not None and is_full:
        runs_it = manager.state().main_pid == main_pid(status)
        if runs_it and not restart:
            return status, ["What changed counts after: fermix restart"] if change.unit else []
        refuse_inside(home, "restart")
        bring_down(home, STOP_TIMEOUT_S, force=False, as_json=as_json)
    return bring_up(home, as_json), []


def _linger(service: Service, manager: Manager) -> tuple[bool | None, list[str]]:
    if service.place.scope is Scope.SYSTEM:
        return None, []
    user = service.owner.user
    if manager.lingers(user) or manager.let_linger(user):
        return True, []
    return False, [
        f"It ends when {user} logs out. Have it stay with: sudo loginctl enable-linger {shlex.quote(user)}"
    ]


def end(service: Service, notes: list[str], as_json: bool) -> None:
    """Stop the unit and wait until it has ended."""
    manager = Manager(service.place.scope, os.environ)
    try:
        if manager.state().is_up:
            with Waiting("stopping fermix", is_silent=as_json) as waiting:
                waiting.tick()
                manager.stop(waits_s=service.longest_stop_s + STOP_TIMEOUT_S)
    except ManagerUnreachable as error:
        notes.append(error.message)


def forget(service: Service, notes: list[str]) -> None:
    """Have the service manager know that the unit is gone."""
    manager = Manager(service.place.scope, os.environ)
    try:
        manager.reload()
        user = service.owner.user
        if service.place.scope is Scope.USER and manager.lingers(user):
            notes.append(f"Services of {user} still linger; others may need it: loginctl disable-linger")
    except (ManagerUnreachable, ManagerRefused) as error:
        notes.append(error.message)


def state_of(service: Service) -> tuple[UnitState | None, list[str]]:
    """How the unit does, None where no service manager tells; and what there is to say about that."""
    if not service.place.is_real:
        return None, []
    try:
        return Manager(service.place.scope, os.environ).state(), []
    except ServiceError as error:
        return None, [error.message]


def lingers(service: Service) -> bool | None:
    """Whether a user's service runs while that user is not logged in; None when nobody knows."""
    if not service.place.is_real or service.place.scope is Scope.SYSTEM:
        return None
    return Manager(service.place.scope, os.environ).lingers(service.owner.user)
