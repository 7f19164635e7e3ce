"""Where a service unit lies, and whether one is installed for a home; reads one small file at most.

Source: systemd.unit(5), "Unit File Load Path"; launchd.plist(5), "FILES".
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

UNIT_NAME = "fermix.service"
SIGNATURE = "# Written by fermix "
"""How the text of a unit of ours begins."""

_HOME_LINE = re.compile(r'^Environment="FERMIX_HOME=((?:[^"\\]|\\.)*)"$', re.MULTILINE)
_LARGEST_BYTES = 256 * 1024


class Scope(StrEnum):
    """Whose service manager runs it."""

    USER = "user"
    """The person's own; it needs lingering to run while nobody is logged in."""
    SYSTEM = "system"
    """The machine's; it runs as the owner of the home from boot on."""


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one unit, below `root` when that is not `/`."""

    scope: Scope
    root: Path
    folder: Path
    """The folder of units, as the service manager names it."""

    @property
    def unit(self) -> Path:
        """The unit's file on this disk."""
        return self.on_disk(self.named)

    @property
    def named(self) -> Path:
        """The unit's file as the service manager names it."""
        return self.folder / UNIT_NAME

    @property
    def link(self) -> Path:
        """What has it started at boot or login, on this disk."""
        target = "default.target" if self.scope is Scope.USER else "multi-user.target"
        return self.on_disk(self.folder / f"{target}.wants" / UNIT_NAME)

    @property
    def drop_ins(self) -> list[Path]:
        """The owner's additions to the unit, as they lie on this disk."""
        return sorted(self.unit.with_name(f"{UNIT_NAME}.d").glob("*.conf"))

    @property
    def is_real(self) -> bool:
        """Whether the service manager of this machine reads it."""
        return self.root == Path("/")

    def on_disk(self, path: Path) -> Path:
        """Where an absolute path of the installed system lies below the root."""
        return path if self.is_real else self.root / path.relative_to("/")


@dataclass(frozen=True, slots=True)
class Installed:
    """A unit that is there."""

    place: Place
    text: str

    @property
    def home(self) -> Path | None:
        """The home it serves; None when its text does not say."""
        return home_of(self.text)

    @property
    def is_ours(self) -> bool:
        """Whether fermix wrote it, whatever was changed since."""
        return self.text.startswith(SIGNATURE)


def place_of(scope: Scope, environment: Mapping[str, str], root: Path = Path("/")) -> Place:
    """Where the unit of a scope belongs; `environment` is that of the person whose service it is."""
    if scope is Scope.SYSTEM:
        return Place(scope, root, Path("/etc/systemd/system"))
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - a string is wanted
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return Place(scope, root, (settings if settings.is_absolute() else home / ".config") / "systemd/user")


def installed_at(place: Place) -> Installed | None:
    """The unit there; None when there is none, or none that can be read."""
    try:
        with place.unit.open("rb") as file:
            text = file.read(_LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    return Installed(place, text)


def find_installed(home: Path, environment: Mapping[str, str], root: Path = Path("/")) -> Installed | None:
    """The unit that serves this home, the user's before the system's; None when there is none."""
    for scope in Scope:
        found = installed_at(place_of(scope, environment, root))
        if found is not None and found.home is not None and is_same(found.home, home):
            return found
    return None


def is_same(one: Path, other: Path) -> bool:
    """Whether two names lead to one folder, which need not be there."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def home_of(text: str) -> Path | None:
    """The home a unit's text passes on; None when it passes none."""
    found = _HOME_LINE.search(text)
    return Path(unquoted(found[1])) if found else None


def unquoted(text: str) -> str:
    """What systemd reads from between double quotes. Source: systemd.syntax(7), "Quoting"."""
    return re.sub(r"\\(.)", r"\1", text).replace("%%", "%")
