"""The one writer of config.toml: keeps its comments, never overwrites what someone else changed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fermix.config.atomic import stage, sync_folder, write_atomically
from fermix.config.decoding import decode
from fermix.config.edits import Edit, edited
from fermix.config.schema import Schema
from fermix.config.source import Source, parse_source, read_bytes, read_source
from fermix.errors import ConfigChanged, ConfigError

LOCK_WAIT_S = 5.0


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
                self._replace(before, after.raw)
            return after

    def _replace(self, before: Source, raw: bytes) -> None:
        target = Path(os.path.realpath(self._path))
        mode = 0o600
        if before.exists:
            mode = stat.S_IMODE(target.stat().st_mode) & 0o664
            # The backup stands in the home, not beside a link's target: that may be a git checkout.
            write_atomically(backup_of(self._path), before.raw, mode=0o600)
        temporary = stage(target, raw, mode=mode)
        try:
            # An editor takes no lock of ours: look once more, as late as can be.
            if read_bytes(self._path) != (before.raw if before.exists else None):
                raise self._changed()
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)

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


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
