"""`tokens.toml`: the names of devices and what their tokens hash to; never a token itself."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from fermix.auth.files import Kept
from fermix.config.atomic import write_atomically
from fermix.errors import ConfigError, UsageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST = 256
"""Tokens one home may have; each request is compared with all of them."""
_HEADER = "# Written by fermix. Change it with: fermix tokens\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One named token, without the token."""

    name: str
    digest: bytes
    """SHA-256 of the token."""
    created_ms: int
    last_used_ms: int | None = None
    """About when it was last used; None when it never was."""


class _Row(msgspec.Struct):
    """A device as the file has it."""

    sha256: str
    created_ms: int
    last_used_ms: int | None = None


class _File(msgspec.Struct):
    """The whole file."""

    tokens: dict[str, _Row] = {}


class DeviceTokens:
    """The file's verbs. Blocking: the daemon calls the writing ones off its hub, one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: Kept[tuple[Device, ...]] = Kept(path, self._parse, ())

    def all(self) -> tuple[Device, ...]:
        """Every token's name and hash, by name.

        Raises: HomeUnsafe when others can reach the file, ConfigError when it cannot be used.
        """
        return self._kept.look()

    def add(self, device: Device) -> None:
        """Keep one more; durable when it returns.

        Raises: UsageError when the name is no name, is taken, or there are too many; as `all`; OSError.
        """
        if not NAME.fullmatch(device.name):
            raise UsageError(
                f"{device.name[:80]!r} is not a token's name. "
                "Expected 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit."
            )
        with self._alone():
            there = self.all()
            if any(each.name == device.name for each in there):
                raise UsageError(
                    f"There is a token named {device.name!r} already.",
                    hint=f"fermix tokens revoke {device.name}",
                )
            if len(there) >= MOST:
                raise UsageError(
                    f"There are {MOST} tokens, the most there may be.", hint="fermix tokens list"
                )
            self._write((*there, device))

    def remove(self, name: str) -> bool:
        """Forget one; it counts from the next look of any process. False when there is none of this name.

        Raises: as `all`; OSError.
        """
        with self._alone():
            there = self.all()
            left = tuple(each for each in there if each.name != name)
            if len(left) == len(there):
                return False
            self._write(left)
            return True

    def note_use(self, used: dict[bytes, int]) -> None:
        """Write down when tokens were last used (by digest); one that was revoked meanwhile stays away.

        Raises: as `all`; OSError.
        """
        with self._alone():
            there = self.all()
            noted = tuple(
                replace(each, last_used_ms=used.get(each.digest, each.last_used_ms)) for each in there
            )
            if noted != there:
                self._write(noted)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process writes meanwhile. What is locked is the folder: the file itself is replaced."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            # Not by closing alone: gevent's `close` may wait for the hub's next turn.
            fcntl.flock(folder, fcntl.LOCK_UN)
            os.close(folder)

    def _write(self, devices: tuple[Device, ...]) -> None:
        rows = {
            each.name: {
                "sha256": each.digest.hex(),
                "created_ms": each.created_ms,
                **({} if each.last_used_ms is None else {"last_used_ms": each.last_used_ms}),
            }
            for each in sorted(devices, key=lambda each: each.name)
        }
        import toml  # read with tomllib; written when a token is made or revoked

        write_atomically(self.path, (_HEADER + toml.dumps({"tokens": rows})).encode(), mode=0o600)
        self._kept.forget()

    def _parse(self, raw: bytes) -> tuple[Device, ...]:
        try:
            rows = msgspec.convert(tomllib.loads(raw.decode()), type=_File).tokens
            return tuple(
                Device(
                    name=name,
                    digest=_digest(row.sha256),
                    created_ms=row.created_ms,
                    last_used_ms=row.last_used_ms,
                )
                for name, row in sorted(rows.items())
            )
        except (ValueError, RecursionError) as exc:  # of toml, UTF-8, msgspec or hexadecimal digits
            raise ConfigError(
                f"{self.path} is damaged and no device token counts until it is repaired: {exc}.",
                hint=f"Correct it, or begin anew with: rm {shlex.quote(str(self.path))}",
            ) from exc


def _digest(text: str) -> bytes:
    digest = bytes.fromhex(text)
    if len(digest) != 32:
        raise ValueError(f"{text[:80]!r} is no SHA-256")
    return digest
