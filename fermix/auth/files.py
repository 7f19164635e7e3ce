"""Reads a private file of the home, again only when it is another one than last time."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from fermix.config.home import check_private_file
from fermix.config.regular import open_regular
from fermix.errors import ConfigError

LIMIT_BYTES = 1024 * 1024

Value = TypeVar("Value")
_Identity = tuple[int, int, int, int, int, int]


class Kept(Generic[Value]):
    """What a file says, kept as long as the file stays the same one (inode, times, size, mode, owner).

    So a change by any process counts from the next look on, and a look costs one `stat`.
    """

    def __init__(self, path: Path, parse: Callable[[bytes], Value], missing: Value) -> None:
        """`parse` raises ConfigError; `missing` is the value while there is no file."""
        self._path = path
        self._parse = parse
        self._missing = missing
        # One tuple, replaced at once: threads that write look here too.
        self._known: tuple[_Identity | None, Value, ConfigError | None] = (None, missing, None)

    def look(self) -> Value:
        """What the file says now.

        Raises: HomeUnsafe when others can reach it, ConfigError when it cannot be read or understood.
        """
        try:
            present = _identity(self._path.stat())
        except FileNotFoundError:
            return self._missing
        except OSError as exc:
            raise _unusable(self._path, exc) from exc
        identity, value, error = self._known
        if identity != present:
            self._known = identity, value, error = self._read()
        if error is not None:
            raise error
        return value

    def forget(self) -> None:
        """Read the file at the next look whatever it is: this process has just written it."""
        self._known = (None, self._missing, None)

    def _read(self) -> tuple[_Identity | None, Value, ConfigError | None]:
        identity = None
        try:
            with open_regular(self._path) as stream:
                found = os.fstat(stream.fileno())
                identity = _identity(found)
                check_private_file(self._path, found)
                raw = stream.read(LIMIT_BYTES + 1)
            if len(raw) > LIMIT_BYTES:
                raise ConfigError(f"{self._path} is larger than {LIMIT_BYTES} bytes.")
            return identity, self._parse(raw), None
        except FileNotFoundError:
            return None, self._missing, None
        except ConfigError as error:
            return identity, self._missing, error
        except OSError as exc:
            return None, self._missing, _unusable(self._path, exc)


def _identity(found: os.stat_result) -> _Identity:
    # ctime too: a new owner or mode shows nowhere else.
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (found.st_dev, found.st_ino, *times, found.st_size, found.st_mode)


def _unusable(path: Path, exc: OSError) -> ConfigError:
    return ConfigError(f"Cannot use {path}: {exc.strerror}.", hint=f"ls -ld {shlex.quote(str(path))}")
