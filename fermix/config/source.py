"""config.toml as it stands on disk: read whole, within limits, decoded and parsed with clear errors."""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
import shlex
import stat
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fermix.config.positions import lines_of, longest_key
from fermix.config.regular import open_regular
from fermix.errors import ConfigError, HomeUnsafe

SIZE_LIMIT_BYTES = 256 * 1024
"""A hand-written file is a few KB; beyond this it is something else by mistake."""

KEY_PARTS_LIMIT = 32

_BOM = codecs.BOM_UTF8
_POSITION = re.compile(r" \(at line (\d+), column (\d+)\)$")
_END = " (at end of document)"


@dataclass(frozen=True)
class Source:
    """One reading of config.toml; a file that does not exist reads as empty."""

    path: Path
    raw: bytes
    text: str
    """Without the byte-order mark."""
    document: dict[str, object]
    exists: bool

    @property
    def digest(self) -> str:
        """Names this very content, to see whether someone else changed it since."""
        return hashlib.sha256(self.raw).hexdigest() if self.exists else "absent"

    def place(self, key: tuple[str, ...]) -> str:
        """Where `key` stands, for an error message: the file, and the line when it is there."""
        while key:
            if key in self._lines:
                return f"{self.path}, line {self._lines[key]}"
            key = key[:-1]
        return str(self.path)

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        return lines_of(self.text)


def read_source(path: Path) -> Source:
    """What config.toml says now.

    Raises: ConfigError when it cannot be read or is not TOML, with file and line;
    HomeUnsafe when anybody else could have written it.
    """
    raw = read_bytes(path)
    if raw is None:
        return Source(path, b"", "", {}, exists=False)
    return parse_source(path, raw)


def parse_source(path: Path, raw: bytes) -> Source:
    """The same from bytes in hand.

    Raises: ConfigError naming file and line.
    """
    text = _decode(path, raw)
    # tomllib's memory grows with the square of a key's length: 100,000 parts would take all there is.
    if longest_key(text) > KEY_PARTS_LIMIT:
        raise ConfigError(f"{path}: a key has more than {KEY_PARTS_LIMIT} parts.")
    try:
        document = tomllib.loads(text)
    except RecursionError as exc:
        raise ConfigError(f"{path} is nested too deeply to be a configuration.") from exc
    except ValueError as exc:  # TOMLDecodeError, or an integer of thousands of digits
        raise ConfigError(_explain(path, text, str(exc)), hint=_way_back(path)) from exc
    return Source(path, raw, text, document, exists=True)


def read_bytes(path: Path) -> bytes | None:
    """The file's bytes; None when there is no such file. Symbolic links are followed.

    Raises: ConfigError, HomeUnsafe.
    """
    try:
        stream = open_regular(path)
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError(
                f"{path} is a link to {path.readlink()}, which does not exist.",
                hint=f"ls -l {shlex.quote(str(path))}",
            ) from None
        return None
    except OSError as exc:
        raise ConfigError(
            f"Cannot read {path}: {_reason(exc)}.", hint=f"ls -l {shlex.quote(str(path))}"
        ) from exc
    with stream:
        _refuse_unsafe(path, os.fstat(stream.fileno()))
        try:
            raw = stream.read(SIZE_LIMIT_BYTES + 1)
        except OSError as exc:
            raise ConfigError(f"Cannot read {path}: {_reason(exc)}.") from exc
    if len(raw) > SIZE_LIMIT_BYTES:
        raise ConfigError(
            f"{path} is larger than {SIZE_LIMIT_BYTES} bytes, the most a configuration may be."
        )
    return raw


def _refuse_unsafe(path: Path, found: os.stat_result) -> None:
    # Group-writable is let through: dotfile checkouts under umask 002 are, and that group is the owner's.
    if found.st_mode & stat.S_IWOTH:
        raise HomeUnsafe(
            f"{path} has mode {stat.S_IMODE(found.st_mode):04o}: anyone may change it.",
            hint=f"chmod 600 {shlex.quote(str(path))}",
        )
    if found.st_uid not in (os.geteuid(), 0):
        raise HomeUnsafe(
            f"{path} belongs to user {found.st_uid}, not to you ({os.geteuid()}).",
            hint=f"sudo chown {os.geteuid()} {shlex.quote(str(path))}",
        )


def _decode(path: Path, raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(f"{path} is saved as UTF-16; save it as UTF-8.")
    body = raw.removeprefix(_BOM)
    stray = body.find(_BOM)
    if stray >= 0:
        line = body.count(b"\n", 0, stray) + 1
        raise ConfigError(
            f"{path}, line {line}: a byte-order mark (U+FEFF). Only the start of the file may have one.",
            hint=f"sed -i '{line}s/\\xEF\\xBB\\xBF//g' {shlex.quote(str(path))}",
        )
    try:
        return body.decode()
    except UnicodeDecodeError as exc:
        line = body.count(b"\n", 0, exc.start) + 1
        raise ConfigError(
            f"{path}, line {line}: byte 0x{body[exc.start]:02x} is not UTF-8; save the file as UTF-8."
        ) from exc


def _explain(path: Path, text: str, problem: str) -> str:
    where = f"{path}"
    if found := _POSITION.search(problem):
        where = f"{path}, line {found[1]}, column {found[2]}"
        problem = problem[: found.start()]
    elif problem.endswith(_END):
        where = f"{path}, line {text.count(chr(10)) + 1}"
        problem = problem.removesuffix(_END) + " (at the end of the file)"
    elif "digits" in problem:
        problem = "A whole number has far too many digits"
    return f"{where} is not TOML: {problem}."


def _way_back(path: Path) -> str:
    """Which file to repair, or to take back: the writer keeps those before its last changes."""
    kept = path.with_name(f"{path.name}.bak")
    back = "; or take back what was before: fermix config restore"
    return f"${{EDITOR:-vi}} {shlex.quote(str(path))}" + (back if kept.exists() else "")


def _reason(exc: OSError) -> str:
    return os.strerror(exc.errno or errno.EIO)
