"""The one writer of config.toml: keeps its comments, never overwrites what someone else changed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fermix.config.atomic import stage, sync_folder, write_atomically
from fermix.config.decoding import decode
from fermix.config.edits import Edit, edited
from fermix.config.schema import Schema
from fermix.config.source import Source, parse_source, read_bytes, read_source
from fermix.errors import ConfigChanged, ConfigError

LOCK_WAIT_S = 5.0
KEPT = 5
"""Backups."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A config.toml that was replaced."""

    number: int
    """0 is the latest."""
    path: Path
    raw: bytes
    changed_ms: int
    """When it was replaced."""
    problem: str | None
    """Why it would not load; None when it would."""


class ConfigWriter:
    """Edits one config.toml; a link is followed, so a dotfile manager's file is edited in its place."""

    def __init__(self, path: Path, schema: Schema, *, user_home: str) -> None:
        self._path = path
        self._schema = schema
        self._user_home = user_home

    def apply(self, edits: Sequence[Edit], *, based_on: str | None = None) -> Source:
        """Make the edits, keep the previous file as `config.toml.bak`, and return what now stands.

        based_on: the `Source.digest` the caller decided on; None means whatever stands now.
        Raises: ConfigChanged when the file is no longer that one; SettingUnknown, SettingInvalid
        when the result would not load; ConfigError when it cannot be written. Then nothing changed.
        """
        with self._locked():
            before = read_source(self._path)
            if based_on is not None and before.digest != based_on:
                raise self._changed()
            after = parse_source(self._path, edited(before, edits))
            if after.raw == before.raw:
                return before
            problems = decode(self._schema, after, user_home=self._user_home).problems
            if problems:
                raise problems[0]
            with self._explained():
                self._replace(before.raw if before.exists else None, after.raw)
            return after

    def backups(self) -> list[Backup]:
        """The files that were replaced, the latest first; each says whether it would load."""
        found = []
        for number, path in enumerate(backups_of(self._path)):
            try:
                raw = read_bytes(path)
                if raw is None:
                    continue
                changed_ms = path.stat().st_mtime_ns // 1_000_000
            except (ConfigError, OSError) as exc:
                found.append(Backup(number, path, b"", 0, str(exc)))
                continue
            found.append(Backup(number, path, raw, changed_ms, self._problem_of(raw)))
        return found

    def restore(self, number: int | None = None) -> Backup:
        """Put a backup in the place of config.toml and keep what stood there, broken or not, as one.

        number: which one, as `Backup.number`; None means the latest that loads and says something else.
        Raises: ConfigError when there is none such, or it would not load. Then nothing changed.
        """
        if not self._path.parent.exists():
            self._chosen(number, None)  # raises: without a folder there is no backup, nor a place to lock
        with self._locked():
            present = read_bytes(self._path)
            chosen = self._chosen(number, present)
            with self._explained():
                self._replace(present, chosen.raw)
            return chosen

    def _chosen(self, number: int | None, present: bytes | None) -> Backup:
        found = self.backups()
        if number is None:
            others = [each for each in found if each.raw != present]
            good = next((each for each in others if each.problem is None), None)
            if good is not None:
                return good
            told = f" {others[0].path.name} would not load: {others[0].problem}" if others else ""
            raise ConfigError(
                f"No backup of {self._path} can be put back.{told}", hint="fermix config restore --list"
            )
        for each in found:
            if each.number == number and each.problem is None:
                return each
            if each.number == number:
                raise ConfigError(
                    f"{each.path} would not load: {each.problem}", hint="fermix config restore --list"
                )
        raise ConfigError(f"There is no backup {number}.", hint="fermix config restore --list")

    def _problem_of(self, raw: bytes) -> str | None:
        try:
            source = parse_source(self._path, raw)
        except ConfigError as exc:
            return exc.message
        problems = decode(self._schema, source, user_home=self._user_home).problems
        return problems[0].message if problems else None

    def _replace(self, before: bytes | None, raw: bytes) -> None:
        target = Path(os.path.realpath(self._path))
        mode = 0o600
        if before is not None:
            mode = stat.S_IMODE(target.stat().st_mode) & 0o664
            # Backups stand in the home, not beside a link's target: that may be a git checkout.
            self._keep(before)
        temporary = stage(target, raw, mode=mode)
        try:
            # An editor takes no lock of ours: look once more, as late as can be.
            if read_bytes(self._path) != before:
                raise self._changed()
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)

    def _keep(self, raw: bytes) -> None:
        """Make `raw` the latest backup; the same content is kept once, of all others the latest few."""
        places = backups_of(self._path)
        same = (number for number, path in enumerate(places) if _content(path) in (None, raw))
        last = next(same, len(places) - 1)
        for number in range(last, 0, -1):
            places[number - 1].replace(places[number])
        write_atomically(places[0], raw, mode=0o600)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps other fermix processes from editing at the same time."""
        path = self._path.with_name(f"{self._path.name}.lock")
        with self._explained():
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = time.monotonic() + LOCK_WAIT_S
            while not _try_lock(descriptor):
                if time.monotonic() > end:
                    raise ConfigError(
                        f"Another fermix has been editing {self._path} for {LOCK_WAIT_S:g} seconds.",
                        hint=f"fuser -v {shlex.quote(str(path))}",
                    )
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            folder = shlex.quote(str(self._path.parent))
            raise ConfigError(
                f"Cannot write {self._path}: {exc.strerror}. The file is as it was.",
                hint=f"ls -ld {folder}; df -h {folder}",
            ) from exc

    def _changed(self) -> ConfigChanged:
        return ConfigChanged(
            f"{self._path} was changed by someone else meanwhile; it is left as they wrote it.",
            hint="Look at it (fermix config show), then give the command again.",
        )


def backup_of(path: Path) -> Path:
    """Where the previous config.toml is kept."""
    return path.with_name(f"{path.name}.bak")


def backups_of(path: Path) -> list[Path]:
    """Where the latest previous ones are kept: .bak, .bak.1, .bak.2, …"""
    latest = backup_of(path)
    return [latest, *(latest.with_name(f"{latest.name}.{number}") for number in range(1, KEPT))]


def _content(path: Path) -> bytes | None:
    """None when there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
