"""The service of one home: writes its files, removes them, and compares them with what they should be."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fermix.errors import ServiceError, ServiceForeign, ServiceMissing, UsageError
from fermix.paths import Home
from fermix.setup.service.drift import Difference, differences
from fermix.setup.service.environment_file import environment_text, is_untouched
from fermix.setup.service.files import make_folders, remove, remove_empty, write_link, write_whole
from fermix.setup.service.namespaces import reason_against
from fermix.setup.service.owner import Owner, acting_as
from fermix.setup.service.places import Installed, Place, Scope, installed_at, is_same
from fermix.setup.service.systemd import UnitFacts, folders_made, unit_text

_CONFINED = "\nPrivateUsers=yes\n"


@dataclass(frozen=True, slots=True)
class Change:
    """What an install did."""

    unit: bool
    """Whether the unit was written, for the first time or again."""
    is_new: bool
    differences: tuple[Difference, ...]
    """What the old unit said otherwise; empty for a new one."""
    environment_file: bool
    """Whether the environment file was written; the owner's stays."""
    link: bool
    """Whether it was not started at boot or login before."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What an uninstall did."""

    removed: tuple[Path, ...]
    kept: tuple[Path, ...]
    """The owner's: drop-ins, an edited environment file."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the files of an installed service are."""

    installed: Installed
    differences: tuple[Difference, ...]
    is_enabled: bool
    drop_ins: tuple[Path, ...]
    has_environment_file: bool

    @property
    def is_current(self) -> bool:
        """Whether nothing is to be repaired."""
        return not self.differences and self.is_enabled


class Service:
    """The service of a home in one place.

    facts: what its unit is made from; the folders and the confinement are filled in here.
    is_plain: whether a user's unit goes without a user namespace; None keeps what is installed, and
    for a new unit takes what this machine can do.
    """

    def __init__(
        self,
        place: Place,
        owner: Owner,
        facts: UnitFacts,
        *,
        environment: Mapping[str, str],
        is_plain: bool | None = None,
    ) -> None:
        self.place = place
        self.owner = owner
        self.facts = facts
        self._environment = environment
        self._is_plain = is_plain

    @property
    def home(self) -> Home:
        """The home it serves."""
        return Home(self.facts.home)

    @property
    def longest_stop_s(self) -> float:
        """How long its daemon may take to end."""
        return self.facts.longest_stop_s

    @property
    def environment_file(self) -> Path:
        """On this disk."""
        return self.place.on_disk(self.facts.environment_file)

    def find(self) -> Installed:
        """The installed unit of this home.

        Raises: ServiceMissing; ServiceForeign when it is not ours or serves another home.
        """
        found = self._present()
        if found is None:
            raise ServiceMissing(
                f"No {self.place.scope} service is installed for the home '{self.facts.home}'.",
                hint=f"fermix service install --{self.place.scope}",
            )
        return found

    def install(self) -> Change:
        """Write whatever is missing or differs; done twice, the second time changes nothing.

        Raises: UsageError when root is needed, ServiceForeign, ServiceError, OSError.
        """
        self._check_rights()
        self._check_program()
        old = self._present()
        before = old.text if old is not None else None
        text = self._expected(before)
        made = [*folders_made(before or "")]
        made += self._write_home()
        wrote_environment = self._write_environment()
        made += make_folders(self.place.unit.parent, 0o755)
        made += make_folders(self.place.link.parent, 0o755)
        text = self._expected(before, tuple(dict.fromkeys(made)))
        if text != before:
            write_whole(self.place.unit, text, 0o644)
        was_enabled = os.path.lexists(self.place.link)
        write_link(self.place.link, self.place.named)
        return Change(
            unit=text != before,
            is_new=before is None,
            differences=tuple(differences(before, text)) if before is not None else (),
            environment_file=wrote_environment,
            link=not was_enabled,
        )

    def uninstall(self) -> Removal:
        """Remove what install made; the unit last, so that a second try finds what a killed one left.

        Raises: UsageError when root is needed, ServiceMissing, ServiceForeign, OSError.
        """
        self._check_rights()
        found = self.find()
        removed, kept = [], list(self.place.drop_ins)
        with self._as_owner():
            if self._environment_is_untouched():
                if remove(self.environment_file):
                    removed.append(self.environment_file)
            elif self.environment_file.exists():
                kept.append(self.environment_file)
        removed += [path for path in (self.place.link, self.place.unit) if remove(path)]
        remove_empty(folders_made(found.text))
        return Removal(tuple(removed), tuple(kept))

    def look(self) -> Look:
        """Compare the files with what this fermix would write.

        Raises: ServiceMissing, ServiceForeign.
        """
        found = self.find()
        with self._as_owner():
            has_environment_file = self.environment_file.exists()
        return Look(
            installed=found,
            differences=tuple(differences(found.text, self._expected(found.text))),
            is_enabled=os.path.lexists(self.place.link),
            drop_ins=tuple(self.place.drop_ins),
            has_environment_file=has_environment_file,
        )

    def _present(self) -> Installed | None:
        found = installed_at(self.place)
        if found is None:
            return None
        unit = shlex.quote(str(self.place.unit))
        if not found.is_ours:
            raise ServiceForeign(
                f"'{self.place.unit}' was not written by fermix; it is left as it is.",
                hint=f"mv {unit} {unit}.old",
            )
        if found.home is None or not is_same(found.home, self.facts.home):
            raise ServiceForeign(
                f"'{self.place.unit}' serves the home '{found.home}', not '{self.facts.home}'.",
                hint=f"FERMIX_HOME={shlex.quote(str(found.home))} fermix service uninstall",
            )
        return found

    def _expected(self, before: str | None, folders: tuple[str, ...] | None = None) -> str:
        if folders is None:
            folders = folders_made(before or "")
        return unit_text(replace(self.facts, folders=folders, is_confined=self._is_confined(before)))

    def _is_confined(self, before: str | None) -> bool:
        if self.place.scope is Scope.SYSTEM:
            return True
        if self._is_plain is not None:
            return not self._is_plain
        if before is not None:
            return _CONFINED in before
        return reason_against() is None

    def _check_rights(self) -> None:
        if self.place.scope is Scope.SYSTEM and self.place.is_real and os.geteuid() != 0:
            raise UsageError(
                "A system service is installed and removed by root.", hint="sudo fermix service --help"
            )

    def _check_program(self) -> None:
        program = Path(self.facts.command[0])
        if not os.access(program, os.X_OK):
            raise ServiceError(
                f"The program '{program}' is gone or cannot be run.", hint=f"ls -l {program}"
            )

    def _as_owner(self) -> contextlib.AbstractContextManager[None]:
        """Below a throw-away root nobody else has a say, and nobody else may write."""
        return acting_as(self.owner) if self.place.is_real else contextlib.nullcontext()

    def _write_home(self) -> tuple[str, ...]:
        with self._as_owner():
            return make_folders(self.place.on_disk(self.facts.home), 0o700)

    def _write_environment(self) -> bool:
        with self._as_owner():
            if os.path.lexists(self.environment_file):
                return False
            write_whole(self.environment_file, environment_text(self._passed_on()), 0o600)
            return True

    def _passed_on(self) -> Mapping[str, str]:
        """root's own folders are nothing for the daemon of another."""
        if self.place.scope is Scope.USER:
            return self._environment
        return {name: value for name, value in self._environment.items() if not name.startswith("XDG_")}

    def _environment_is_untouched(self) -> bool:
        try:
            return is_untouched(self.environment_file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return False


def unit_facts(
    scope: Scope,
    home: Path,
    owner: Owner,
    *,
    command: tuple[str, ...],
    variables: Mapping[str, str],
    version: str,
    longest_stop_s: float,
) -> UnitFacts:
    """What the unit of a home is made from; the program by its whole path, as a unit wants it."""
    program, *words = command
    return UnitFacts(
        scope=scope,
        version=version,
        command=(os.path.abspath(program), *words),  # noqa: PTH100 - a link stays the link it is
        variables=variables,
        home=home,
        environment_file=Home(home).service_environment,
        longest_stop_s=longest_stop_s,
        account=owner.account if scope is Scope.SYSTEM else None,
    )
