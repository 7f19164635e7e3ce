"""`fermix service`: have the daemon run from login or boot on, and see how its unit is."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from fermix.cli import service_agent
from fermix.cli.options import Group, examples, json_option, print_json
from fermix.cli.service_life import end, enliven, forget, lingers, state_of
from fermix.cli.service_target import check_owner, find_service
from fermix.cli.status_report import main_pid
from fermix.cli.terminal import escaped, say
from fermix.cli.unit import refuse_inside
from fermix.errors import UsageError
from fermix.setup.service.drift import Difference
from fermix.setup.service.places import Scope
from fermix.setup.service.service import Change, Service
from fermix.setup.service.systemd import UNREPAIRABLE

F = TypeVar("F", bound=Callable[..., object])


@click.group(
    cls=Group,
    epilog=examples(
        "fermix service install", "sudo fermix service install --system", "fermix service status"
    ),
)
def group() -> None:
    """Run the daemon from login or boot on."""


def place_options(function: F) -> F:
    """Which unit is meant, as `scope` (None: whatever there is), `named_home` and `root`."""

    @wraps(function)
    def chosen(*arguments: object, is_user: bool, is_system: bool, **rest: object) -> object:
        if is_user and is_system:
            raise UsageError("--user and --system exclude each other.", hint="fermix service --help")
        scope = "user" if is_user else "system" if is_system else None
        return function(*arguments, scope=scope, **rest)

    placed = cast(F, chosen)
    for option in reversed(
        (
            click.option("--user", "is_user", is_flag=True, help="Your own service manager's."),
            click.option(
                "--system", "is_system", is_flag=True, help="The machine's; runs as the home's owner."
            ),
            click.option(
                "--home",
                "named_home",
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="The home it serves, instead of FERMIX_HOME or ~/.fermix.",
            ),
            click.option(
                "--root",
                type=click.Path(path_type=Path),
                default="/",
                metavar="DIR",
                help="Write below this folder and leave the service manager alone.",
            ),
        )
    ):
        placed = option(placed)
    return placed


@group.command(
    epilog=examples(
        "fermix service install",
        "fermix service install --restart",
        "sudo fermix service install --system --home /home/ann/.fermix",
    )
)
@place_options
@click.option("--as-root", is_flag=True, help="Let a system service run as root, whose home it is.")
@click.option(
    "--plain/--confined",
    "is_plain",
    default=None,
    help="Without or with a user namespace (a user's service; else what this machine can do).",
)
@click.option("--start/--no-start", "starts", default=True, help="Start it when it does not run.")
@click.option("--restart", is_flag=True, help="Restart it when what runs is not what is installed.")
@json_option
def install(
    scope: str | None,
    named_home: Path | None,
    root: Path,
    as_root: bool,
    is_plain: bool | None,
    starts: bool,
    restart: bool,
    as_json: bool,
) -> None:
    """Install the service, or repair an installed one; the owner's additions stay."""
    service = find_service(scope, named_home, root, is_plain=is_plain)
    if sys.platform == "darwin":
        service_agent.install(service, scope, as_json=as_json)
        return
    check_owner(service, as_root=as_root)
    if restart and service.place.is_real:
        refuse_inside(service.home, "restart")  # before anything is written
    change = service.install()
    told = _told(service, change)
    if not as_json:
        _print_install(service, change, told)  # it stands, also when the daemon cannot be started
    if service.place.is_real:
        told |= enliven(service, change, starts=starts, restart=restart, as_json=as_json)
    if as_json:
        print_json(told)
        return
    if told["running"]:
        print(f"fermix: running (pid {main_pid(told['running'])}, version {told['running']['version']})")
    _print_notes(told["notes"])


@group.command(epilog=examples("fermix service uninstall", "sudo fermix service uninstall --system"))
@place_options
@json_option
def uninstall(scope: str | None, named_home: Path | None, root: Path, as_json: bool) -> None:
    """Stop the service and remove what install made; the home stays."""
    if sys.platform == "darwin":
        service_agent.uninstall(as_json=as_json)
        return
    service = find_service(scope, named_home, root)
    service.find()
    notes: list[str] = []
    if service.place.is_real:
        refuse_inside(service.home, "stop")
        end(service, notes, as_json)
    removal = service.uninstall()
    if service.place.is_real:
        forget(service, notes)
    notes = list(dict.fromkeys(notes))  # an unreachable manager refuses each step alike
    if as_json:
        told: dict[str, Any] = {"scope": service.place.scope.value, "notes": notes}
        print_json(told | {"removed": [*map(str, removal.removed)], "kept": [*map(str, removal.kept)]})
        return
    print(f"fermix: removed the {service.place.scope} service ({escaped(str(service.place.unit))})")
    for path in removal.kept:
        print(escaped(f"  kept '{path}', which is yours"))
    _print_notes(notes)


@group.command("status", epilog=examples("fermix service status", "fermix service status --json"))
@place_options
@json_option
def show(scope: str | None, named_home: Path | None, root: Path, as_json: bool) -> int:
    """Say whether the installed unit is as it should be, and how it does.

    Exit status 1 when it is not as `fermix service install` would make it.
    """
    service = find_service(scope, named_home, root)
    look = service.look()
    state, notes = state_of(service)
    told: dict[str, Any] = {
        "scope": service.place.scope.value,
        "unit": str(service.place.unit),
        "enabled": look.is_enabled,
        "current": look.is_current,
        "differences": [dataclasses.asdict(each) for each in look.differences],
        "drop_ins": [str(path) for path in look.drop_ins],
        "environment_file": str(service.environment_file) if look.has_environment_file else None,
        "state": dataclasses.asdict(state) if state else None,
        "lingers": lingers(service),
        "notes": notes,
    }
    if as_json:
        print_json(told)
    else:
        _print_status(told, look.differences, repair=_repair(service, named_home, root))
    return 0 if look.is_current else 1


def _told(service: Service, change: Change) -> dict[str, Any]:
    return {
        "scope": service.place.scope.value,
        "unit": str(service.place.unit),
        "home": str(service.home.root),
        "changed": change.unit or change.link or change.environment_file,
        "new": change.is_new,
        "differences": [dataclasses.asdict(each) for each in change.differences],
        "environment_file": str(service.environment_file),
        "lingers": None,
        "running": None,
        "notes": [],
    }


def _print_install(service: Service, change: Change, told: Mapping[str, Any]) -> None:
    scope, unit = service.place.scope, escaped(str(service.place.unit))
    verb = "installed" if change.is_new else "repaired" if told["changed"] else "current already:"
    print(f"fermix: {verb} the {scope} service ({unit})")
    _print_differences(change.differences)
    if change.environment_file:
        print(escaped(f"  its variables: '{service.environment_file}'"))


def _repair(service: Service, named_home: Path | None, root: Path) -> str:
    """The command that makes the service as it should be, to be pasted as it stands."""
    words = ["fermix", "service", "install"]
    if named_home is not None:
        words += ["--home", str(named_home)]
    if not service.place.is_real:
        words += ["--root", str(root)]
    if service.place.scope is Scope.SYSTEM and service.owner.uid == 0:
        words.append("--as-root")
    return shlex.join(words)


def _print_status(told: Mapping[str, Any], found: tuple[Difference, ...], *, repair: str) -> None:
    state = told["state"]
    how = f"{state['active']} ({state['sub']})" if state else "installed"
    pid = f", pid {state['main_pid']}" if state and state["main_pid"] else ""
    print(f"fermix: the {told['scope']} service is {how}{pid}")
    print(escaped(f"  unit      {told['unit']}"))
    print(f"  starts    {_starts(told)}")
    if state and (state["restarts"] or state["result"] not in ("success", "")):
        print(f"  restarts  {state['restarts']}, last result {state['result']} ({state['exit_status']})")
        if state["exit_status"] == UNREPAIRABLE and not state["main_pid"]:
            print("            it starts no better until something is changed; see: fermix doctor")
    for path in told["drop_ins"]:
        print(escaped(f"  yours     {path}"))
    if found:
        print("  It is not what this fermix would install:")
        _print_differences(found)
    if state and state["is_stale"]:
        print("  The service manager has not read the unit as it is now.")
    if not told["current"] or (state and state["is_stale"]):
        say(f"  try: {repair}")
    _print_notes(told["notes"])


def _starts(told: Mapping[str, Any]) -> str:
    if not told["enabled"]:
        return "by hand only, it is not enabled"
    if told["scope"] == "system":
        return "at boot"
    return "at boot" if told["lingers"] else "at login"


def _print_differences(found: tuple[Difference, ...]) -> None:
    for each in found:
        if each.installed is not None:
            print(escaped(f"  line {each.line}: - {each.installed}"))
        if each.expected is not None:
            print(escaped(f"  line {each.line}: + {each.expected}"))


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        print(escaped(f"  {note}"), file=sys.stderr)
