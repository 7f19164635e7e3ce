"""Replaces a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, raw: bytes, *, mode: int) -> None:
    """Put `raw` in the place of `path`, with this mode from its first byte, durable on return.

    Raises: OSError; then `path` is as it was and nothing is left behind.
    """
    temporary = stage(path, raw, mode=mode)
    try:
        temporary.replace(path)
    except BaseException:  # Ctrl-C too leaves nothing behind
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def stage(path: Path, raw: bytes, *, mode: int) -> Path:
    """A finished file beside `path`, ready to be renamed onto it.

    Raises: OSError; then nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    # Created private: the wanted mode comes once the content is complete.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
    except BaseException:  # Ctrl-C too leaves nothing behind
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
