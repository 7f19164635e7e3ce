"""Removes the files that came with messages of a deleted session, also after a crash in the middle."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from fermix.config.atomic import write_atomically
from fermix.daemon.typed import forget
from fermix.errors import OwnerError
from fermix.ids import is_id
from fermix.paths import Home
from fermix.tasks import ThreadPool

TIMEOUT_S = 60.0

log = logging.getLogger(__name__)


class Removals:
    """Written down before the rows are deleted, carried out afterwards: `gateway.erase.Files`."""

    def __init__(self, home: Home, pool: ThreadPool) -> None:
        self._home = home
        self._pool = pool

    def forget_typed(self, digests: Collection[bytes]) -> None:
        """Take texts of these digests out of the history of the chat's prompt."""
        try:
            self._pool.run(lambda: forget(self._home.chat_history, digests), timeout_s=TIMEOUT_S)
        except OSError as error:
            raise OwnerError(
                f"Cannot write '{self._home.chat_history}': {error.strerror}; nothing was deleted."
            ) from error

    def intend(self, removal_id: str, witness_id: str, paths: Iterable[str]) -> None:
        """Write down that these files go once the inbox row `witness_id` is deleted.

        Raises: OwnerError when the disk refuses.
        """
        raw = json.dumps({"witness": witness_id, "paths": list(paths)}).encode()

        def write() -> None:
            self._home.removals.mkdir(mode=0o700, exist_ok=True)
            write_atomically(self._home.removals / removal_id, raw, mode=0o600)

        try:
            self._pool.run(write, timeout_s=TIMEOUT_S)
        except OSError as error:
            raise OwnerError(
                f"Cannot write into '{self._home.removals}': {error.strerror}; nothing was deleted."
            ) from error

    def carry_out(self, removal_id: str) -> None:
        """Remove the files of a list; what cannot be removed is logged and stays on it."""
        path = self._home.removals / removal_id
        try:
            self._pool.run(lambda: self._remove(path), timeout_s=TIMEOUT_S)
        except OSError as error:
            log.error("Files of a deleted session stay until the next start: %s", error)

    def finish(self, removal_id: str) -> None:
        """Forget a list, unless files of it are still there."""
        self._drop(removal_id, must_be_done=True)

    def give_up(self, removal_id: str) -> None:
        """Forget a list and leave its files."""
        self._drop(removal_id, must_be_done=False)

    def waiting(self) -> list[tuple[str, str]]:
        """Removal and witness of every list that an earlier life left."""
        return self._pool.run(self._lists, timeout_s=TIMEOUT_S)

    def _lists(self) -> list[tuple[str, str]]:
        folder = self._home.removals
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        return [(name, _read(folder / name)[0]) for name in names if is_id(name)]

    def _remove(self, list_path: Path) -> None:
        for folder in self._folders(list_path):
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)

    def _drop(self, removal_id: str, *, must_be_done: bool) -> None:
        path = self._home.removals / removal_id

        def drop() -> None:
            if not (must_be_done and any(folder.exists() for folder in self._folders(path))):
                path.unlink(missing_ok=True)

        try:
            self._pool.run(drop, timeout_s=TIMEOUT_S)
        except OSError as error:
            log.error("A list of removed files stays until the next start: %s", error)

    def _folders(self, list_path: Path) -> list[Path]:
        """Only ever folders that uploads were moved into, whatever the list says."""
        root = self._home.workspace / "attachments"
        paths = map(Path, _read(list_path)[1])
        return [path.parent for path in paths if path.parent.parent == root and is_id(path.parent.name)]


def _read(path: Path) -> tuple[str, list[str]]:
    """Witness and paths; empty when somebody else wrote into the file."""
    try:
        found = json.loads(path.read_bytes())
        return str(found["witness"]), [str(each) for each in found["paths"]]
    except (OSError, ValueError, TypeError, KeyError):
        return "", []
