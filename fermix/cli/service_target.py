"""Which service a command line is about: its scope, its home, and whose that is."""

from __future__ import annotations

import os
from pathlib import Path

from fermix import __version__
from fermix.daemon.sections import load_settings
from fermix.daemon.settings import RuntimeSettings
from fermix.errors import ConfigError, UsageError
from fermix.paths import Home
from fermix.process.program import own_command, own_variables
from fermix.setup.service.owner import acting_as, caller, owner_of
from fermix.setup.service.places import Scope, find_installed, place_of
from fermix.setup.service.service import Service, unit_facts


def find_service(
    scope: str | None, named_home: Path | None, root: Path, *, is_plain: bool | None = None
) -> Service:
    """The service a command line is about; without a scope the installed one, else the usual one."""
    root = Path(os.path.abspath(root))  # noqa: PTH100 - a link stays the link it is
    home = _home(named_home)
    found = None if scope else find_installed(home.root, os.environ, root)
    if found is not None:
        kind = found.place.scope
    else:
        kind = Scope(scope) if scope else Scope.SYSTEM if os.geteuid() == 0 else Scope.USER
    place = place_of(kind, os.environ, root)
    owner = owner_of(place.on_disk(home.root), os.environ)
    with acting_as(owner):
        longest_stop_s = _longest_stop_s(home)
    facts = unit_facts(
        kind,
        home.root,
        owner,
        command=own_command(os.environ),
        # this shell's own PYTHONPATH is not the service's, nor would the next shell's be the same
        variables=own_variables({name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}),
        version=__version__,
        longest_stop_s=longest_stop_s,
    )
    return Service(place, owner, facts, environment=os.environ, is_plain=is_plain)


def _home(named: Path | None) -> Home:
    """The home by its option, by FERMIX_HOME, or that of whoever called sudo."""
    if named is not None:
        return Home(Path(os.path.abspath(named.expanduser())))  # noqa: PTH100 - as above
    if os.geteuid() == 0 and "FERMIX_HOME" not in os.environ and "SUDO_UID" in os.environ:
        return Home(caller(os.environ).folder / ".fermix")
    return Home.find(os.environ)


def _longest_stop_s(home: Home) -> float:
    """How long its daemon may take to end; with settings that cannot be read, the usual time."""
    try:
        runtime = load_settings(home, os.environ).runtime
    except ConfigError:
        runtime = RuntimeSettings()
    return runtime.drain_s + runtime.stop_s


def check_owner(service: Service, *, as_root: bool) -> None:
    """Refuse a service that would run as somebody it should not run as. Raises: UsageError."""
    owner, scope, euid = service.owner, service.place.scope, os.geteuid()
    if scope is Scope.SYSTEM and owner.uid == 0 and not as_root:
        raise UsageError(
            f"The home '{service.home.root}' is root's, so the service and all its commands would run as"
            " root; expected the home of a person.",
            hint="sudo fermix service install --system --home /home/NAME/.fermix, or add --as-root",
        )
    if scope is Scope.USER and service.place.is_real and owner.uid != euid:
        raise UsageError(
            f"The home '{service.home.root}' is {owner.user}'s, who installs a user's service for it.",
            hint=f"as {owner.user}: fermix service install --user",
        )
