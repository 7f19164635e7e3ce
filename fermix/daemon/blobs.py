"""Files a local client uploads in pieces and then names in a message."""

from __future__ import annotations

import logging
import os
import re
from io import FileIO
from pathlib import Path

from fermix.clock import Clock
from fermix.errors import OwnerError, UploadUnknown, UsageError
from fermix.ids import is_id, new_id
from fermix.messages import Attachment
from fermix.paths import Home
from fermix.tasks import ThreadPool

LIMIT_BYTES = 64 * 1024 * 1024
"""Largest file one message may bring."""
KEPT_MS = 86_400_000
"""An upload nobody named in a message is removed a day later."""
SWEEP_PAUSE_MS = 3_600_000
TIMEOUT_S = 60.0
NAME_BYTES = 200
"""Longest name given to a file; file systems take 255 bytes."""

log = logging.getLogger(__name__)


class Blobs:
    """Uploads lie in the home until a message takes them into the workspace."""

    def __init__(self, home: Home, *, clock: Clock, pool: ThreadPool) -> None:
        self._home = home
        self._clock = clock
        self._pool = pool
        self._next_sweep_ms = 0

    def add(self, blob_id: str | None, piece: bytes) -> tuple[str, int]:
        """Append a piece to an upload, None begins one; its id and size so far.

        Raises: UsageError for an unknown id or a file over the limit, OwnerError when the disk refuses.
        """
        if blob_id is None:
            chosen, must_exist = new_id(self._clock.now_ms()), False
            if self._clock.now_ms() >= self._next_sweep_ms:
                self._pool.run(self.sweep, timeout_s=TIMEOUT_S)
        else:
            chosen, must_exist = blob_id, True
        path = self._path(chosen)
        return chosen, self._pool.run(lambda: _append(path, piece, must_exist), timeout_s=TIMEOUT_S)

    def take(self, blob_id: str, name: str, media_type: str) -> Attachment:
        """Move an upload into the workspace under a clean name.

        Raises: UsageError when there is no such upload.
        """
        source = self._path(blob_id)
        target = self._home.workspace / "attachments" / blob_id / clean_name(name)

        def move() -> int:
            if target.exists():
                return target.stat().st_size  # the same message sent twice
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)
                return target.stat().st_size
            except FileNotFoundError as error:
                raise UploadUnknown(f"No upload {blob_id!r} is waiting; send the file again.") from error
            except OSError as error:
                raise OwnerError(f"Cannot store the file {name[:80]!r}: {error.strerror}.") from error

        size = self._pool.run(move, timeout_s=TIMEOUT_S)
        return Attachment(str(target), target.name, media_type[:100], size)

    def sweep(self) -> None:
        """Remove uploads that no message took; done again by itself once an hour while files come."""
        self._next_sweep_ms = self._clock.now_ms() + SWEEP_PAUSE_MS
        if not self._home.blobs.is_dir():
            return
        oldest_s = (self._clock.now_ms() - KEPT_MS) / 1000
        for path in self._home.blobs.iterdir():
            try:
                if path.lstat().st_mtime < oldest_s:
                    path.unlink()
            except OSError as error:
                log.warning("An old upload stays: %s", error)

    def _path(self, blob_id: str) -> Path:
        if not is_id(blob_id):
            raise UsageError(f"{blob_id[:40]!r} is not the id of an upload.")
        return self._home.blobs / blob_id


def clean_name(name: str) -> str:
    """A plain file name from whatever a sender called it; never a path, never hidden, never empty."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(char for char in last if char.isprintable() and char not in ':*?"<>|')
    cut = kept.lstrip(". ").encode(errors="replace")[:NAME_BYTES].decode(errors="ignore")
    return cut.rstrip(". ") or "file"


def _append(path: Path, piece: bytes, must_exist: bool) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if not must_exist:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags |= os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0) as file:
            return _add_whole(file, piece)
    except FileNotFoundError as error:
        raise UploadUnknown(f"No upload {path.name!r} is waiting; begin again.") from error
    except OSError as error:
        raise OwnerError(f"Cannot store the upload: {error.strerror}.") from error


def _add_whole(file: FileIO, piece: bytes) -> int:
    """The new size; of a piece that does not fit nothing stays, so that it can be sent again."""
    before = file.seek(0, os.SEEK_END)
    size = before + len(piece)
    if size > LIMIT_BYTES:
        raise UsageError(
            f"A file is over {LIMIT_BYTES // (1024 * 1024)} MiB, the most that may be attached."
        )
    try:
        left = memoryview(piece)
        while left:
            left = left[file.write(left) :]
    except OSError:
        file.truncate(before)
        raise
    return size
