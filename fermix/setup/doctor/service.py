"""The service: its unit says what this fermix would write, is enabled, and did not give up."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from fermix.errors import ManagerRefused, ManagerUnreachable, ServiceError, ServiceForeign, ServiceMissing
from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene
from fermix.setup.service.drift import Difference
from fermix.setup.service.manager import Manager
from fermix.setup.service.places import Scope, place_of
from fermix.setup.service.service import Look, Service

TOPIC = Topic("service")
_SHOWN = 3


def look(scene: Scene) -> list[Finding]:
    """Drift between the installed unit and what would be installed now, and how it fares."""
    service = seen = None
    try:
        service = scene.service()
        seen = service.look() if service is not None else None
    except ServiceMissing:
        pass
    except ServiceForeign as error:
        return [TOPIC.warn(error.message, error.hint)]
    except ServiceError as error:  # whose home it is nobody can say
        return [TOPIC.skipped(error.message, error.hint)]
    if service is None or seen is None:
        return [TOPIC.skipped("No service is installed for this home.", "fermix service install")]
    manager = Manager(service.place.scope, scene.environment)
    findings = [
        *_files(service, seen, manager),
        *(_fares(service, manager) if service.place.is_real else ()),
    ]
    return findings or [TOPIC.ok(f"'{service.place.unit}' is as it should be.")]


def unit_texts(scene: Scene) -> dict[str, str]:
    """Path → text of the units of fermix on this machine, whichever home they serve, and their drop-ins."""
    texts = {}
    for scope in Scope:
        place = place_of(scope, scene.environment)
        for path in (place.unit, *place.drop_ins):
            with suppress(OSError):
                texts[str(path)] = path.read_text("utf-8", "replace")
    return texts


def _files(service: Service, seen: Look, manager: Manager) -> list[Finding]:
    place = service.place
    command = f"{'sudo ' if place.scope is Scope.SYSTEM else ''}fermix service install --{place.scope}"
    fix = partial(_install, service, manager) if _may_write(service) else None
    if seen.differences:
        return [TOPIC.fail(f"'{place.unit}' is not as it should be: {_said(seen)}.", command, fix=fix)]
    if not seen.is_enabled:
        told = (
            f"The service is installed and not started at {_when(place.scope)}: '{place.link}' is missing."
        )
        return [TOPIC.warn(told, command, fix=fix)]
    return []


def _may_write(service: Service) -> bool:
    return service.place.scope is Scope.USER or os.geteuid() == 0 or not service.place.is_real


def _install(service: Service, manager: Manager) -> str:
    """Raises: as `Service.install`."""
    service.install()
    if service.place.is_real:
        with suppress(ManagerUnreachable):  # it reads the file when it comes up
            manager.reload()
    return f"wrote '{service.place.unit}' anew; it counts after: fermix restart"


def _said(seen: Look) -> str:
    lines = [_line(each) for each in seen.differences[:_SHOWN]]
    more = len(seen.differences) - len(lines)
    return "; ".join(lines) + (f"; and {more} more lines" if more > 0 else "")


def _line(difference: Difference) -> str:
    if difference.installed is None:
        return f"line {difference.line} lacks {difference.expected!r}"
    if difference.expected is None:
        return f"line {difference.line} should not have {difference.installed!r}"
    return f"line {difference.line} is {difference.installed!r}, expected {difference.expected!r}"


def _when(scope: Scope) -> str:
    return "login" if scope is Scope.USER else "boot"


def _fares(service: Service, manager: Manager) -> list[Finding]:
    """What the service manager says; nothing where none answers."""
    try:
        state = manager.state()
        lingers = manager.lingers(service.owner.user) if service.place.scope is Scope.USER else None
    except (ManagerUnreachable, ManagerRefused):
        return []
    findings = []
    if state.active == "failed":
        told = f"The service failed ({state.result}, exit status {state.exit_status}) and stays down."
        findings.append(TOPIC.fail(told, "fermix logs -n 50; fermix start"))
    if state.is_stale:
        findings.append(_stale(service, manager.reload))
    if lingers is False:
        told = f"The service ends when {service.owner.user} logs out: lingering is off."
        findings.append(TOPIC.warn(told, f"sudo loginctl enable-linger {shlex.quote(service.owner.user)}"))
    return findings


def _stale(service: Service, reload: Callable[[], None]) -> Finding:
    def fix() -> str:
        reload()
        return "the service manager has read the unit again"

    words = "systemctl --user" if service.place.scope is Scope.USER else "sudo systemctl"
    told = f"The service manager goes on with an older '{service.place.unit}' than stands there."
    return TOPIC.warn(told, f"{words} daemon-reload", fix=fix if _may_write(service) else None)
