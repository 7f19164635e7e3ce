"""All checks in their order, the run over them, and what `--fix` does with what they find."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fermix.errors import FermixError
from fermix.setup.doctor import (
    clock,
    daemon,
    database,
    disk,
    home,
    instructions,
    kernel,
    lease,
    leftovers,
    named_secrets,
    native,
    ports,
    programs,
    provider,
    service,
    settings,
    versions,
)
from fermix.setup.doctor.finding import Finding, State
from fermix.setup.doctor.scene import Scene

ROUNDS = 3
"""A repair may uncover what it was hidden behind: a mode, then an owner."""


@dataclass(frozen=True, slots=True)
class Check:
    """One topic."""

    name: str
    look: Callable[[Scene], Sequence[Finding]]


CHECKS = (
    Check("home", home.look),
    Check("disk", disk.look),
    Check("config", settings.look),
    Check("secrets", named_secrets.look),
    Check("instructions", instructions.look),
    Check("database", database.look),
    Check("clock", clock.look),
    Check("lease", lease.look),
    Check("leftovers", leftovers.look),
    Check("daemon", daemon.look),
    Check("ports", ports.look),
    Check("versions", versions.look),
    Check("service", service.look),
    Check("native", native.look),
    Check("kernel", kernel.look),
    Check("helpers", programs.look),
    Check("provider", provider.look),
)
"""What others rest on comes first, so that a repair is done before they look."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check after its repairs."""

    check: str
    findings: tuple[Finding, ...]
    """What it saw last."""
    done: tuple[str, ...] = ()
    """What was repaired."""
    refused: tuple[str, ...] = ()
    """Why a repair did not work."""


def examine(
    scene: Scene,
    *,
    repairs: bool,
    checks: Sequence[Check] = CHECKS,
    begin: Callable[[str], None] = lambda name: None,
) -> Iterator[Outcome]:
    """The checks' outcomes as they come; `begin` hears each name before its check.

    repairs: do what findings offer, then look again.
    """
    for check in checks:
        begin(check.name)
        findings = _looked(check, scene)
        done: list[str] = []
        refused: list[str] = []
        for _ in range(ROUNDS if repairs else 0):
            fixes = [each.fix for each in findings if each.fix is not None]
            if not fixes or refused:
                break
            if (owner := _stranger(scene)) is not None:
                refused.append(f"The home belongs to user {owner}, who alone may repair it.")
                break
            _repair(fixes, done, refused)
            findings = _looked(check, scene)
        yield Outcome(check.name, tuple(findings), tuple(done), tuple(refused))


def _stranger(scene: Scene) -> int | None:
    """The user the home belongs to, when that is somebody else: root too only looks."""
    try:
        owner = scene.home.root.stat().st_uid
    except OSError:
        return None
    return owner if owner != os.geteuid() else None


def _looked(check: Check, scene: Scene) -> list[Finding]:
    """A check that itself fails is a finding: the others are looked at all the same."""
    try:
        return list(check.look(scene))
    except FermixError as error:
        return [Finding(check.name, State.FAIL, f"It cannot be looked at: {error.message}", error.hint)]
    except PermissionError as error:
        told = f"'{error.filename}' is not yours to look at."
        return [Finding(check.name, State.SKIPPED, told, f"ls -ld {shlex.quote(str(scene.home.root))}")]
    except (OSError, sqlite3.Error, ValueError) as error:
        return [Finding(check.name, State.FAIL, f"It cannot be looked at: {error}.", "fermix bug-report")]


def _repair(fixes: Sequence[Callable[[], str]], done: list[str], refused: list[str]) -> None:
    for fix in fixes:
        try:
            done.append(fix())
        except FermixError as error:
            refused.append(error.message)
        except OSError as error:
            refused.append(f"The system refused '{error.filename}': {error.strerror}.")
