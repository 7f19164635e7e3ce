"""Secrets in files of the home: one file a secret, readable by its owner alone."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fermix.config.atomic import write_atomically
from fermix.config.home import check_private, check_private_file
from fermix.config.references import is_secret_name
from fermix.config.regular import open_regular
from fermix.errors import ConfigError
from fermix.secret import Secret
from fermix.secrets.port import SIZE_LIMIT_BYTES, check_name


class FileSecrets:
    """The secrets in one folder (0700, files 0600); anything wider is refused, not repaired."""

    name = "files"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> Secret | None:
        """The secret, without the line end an editor or `echo` left; None when there is no such file.

        Raises: HomeUnsafe when others can read or change the file or its folder; ConfigError
        when it cannot be read or is no text.
        """
        path = self._folder / check_name(name)
        with _explained(path):
            try:
                stream = open_regular(path)
            except FileNotFoundError:
                return None
            with stream:
                check_private(self._folder)
                check_private_file(path, os.fstat(stream.fileno()), called="this secret")
                raw = stream.read(SIZE_LIMIT_BYTES + 1)
        return Secret(_decode(path, raw))

    def names(self) -> list[str]:
        """Names of the files that are secrets, sorted; none when the folder is missing."""
        with _explained(self._folder):
            try:
                return sorted(each.name for each in self._folder.iterdir() if is_secret_name(each.name))
            except FileNotFoundError:
                return []

    def set(self, name: str, secret: Secret) -> None:
        """Write the secret's file, private from its first byte, whole or not at all.

        Raises: HomeUnsafe, ConfigError.
        """
        path = self._folder / check_name(name)
        raw = secret.reveal().encode()
        if not raw.strip() or len(raw) > SIZE_LIMIT_BYTES or b"\0" in raw:
            raise ConfigError(
                f"The value of secret {name!r} is empty, too long or no text. "
                f"Expected a text of 1 to {SIZE_LIMIT_BYTES} bytes."
            )
        with _explained(path):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(self._folder)
            write_atomically(path, raw, mode=0o600)

    def remove(self, name: str) -> bool:
        """Delete the secret's file; False when it was not there.

        Raises: ConfigError.
        """
        path = self._folder / check_name(name)
        with _explained(path):
            try:
                path.unlink()
            except FileNotFoundError:
                return False
        return True


def _decode(path: Path, raw: bytes) -> str:
    if len(raw) > SIZE_LIMIT_BYTES:
        raise ConfigError(f"{path} is larger than {SIZE_LIMIT_BYTES} bytes, the most a secret may be.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Not chained: the error would carry the secret's bytes.
        raise ConfigError(f"{path} is not UTF-8 text.") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip() or "\0" in text:
        raise ConfigError(f"{path} holds no text. Expected the secret on one line.")
    return text


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        place = shlex.quote(str(path))
        hint = f"df -h {shlex.quote(str(path.parent))}" if exc.errno == errno.ENOSPC else f"ls -ld {place}"
        raise ConfigError(f"Cannot use {path}: {exc.strerror}.", hint=hint) from exc
