"""`auth.json`: the tokens of every sign-in, in one file that only its owner can read.

One object per provider name, so that each can move into another store as it is.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from fermix.auth.files import Kept
from fermix.config.atomic import write_atomically
from fermix.errors import ConfigError, UsageError
from fermix.secret import Secret

VERSION = 1
MOST = 64
"""Sign-ins one home may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in, with the tokens it has now."""

    id: str
    """Made anew at each sign-in: what belongs to an earlier one is known by it."""
    issuer: str
    """Who gave the tokens; nobody else is sent them."""
    access: Secret
    refresh: Secret = field(default_factory=lambda: Secret(""))
    expires_ms: int | None
    """When the access token ends; None when nobody said."""
    signed_in_ms: int
    renewed_ms: int
    account_id: str | None = None
    label: str | None = None
    plan: str | None = None
    refused: str | None = None
    """Why the issuer renews no more, in its words; None while it does."""


class _Row(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A sign-in as the file has it."""

    id: str
    issuer: str
    access_token: str = ""
    refresh_token: str = ""
    expires_ms: int | None = None
    signed_in_ms: int
    renewed_ms: int
    account_id: str | None = None
    label: str | None = None
    plan: str | None = None
    refused: str | None = None


class _File(msgspec.Struct):
    """The whole file."""

    version: int
    sign_ins: dict[str, _Row] = {}


class SignInStore:
    """The file's verbs. Those that write block: the daemon calls them off its hub."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: Kept[Mapping[str, SignIn]] = Kept(path, self._parse, {})

    def all(self) -> Mapping[str, SignIn]:
        """Every sign-in by its provider's name; costs one `stat` while nothing changes.

        Raises: HomeUnsafe when others can reach the file, ConfigError when it cannot be used.
        """
        return self._kept.look()

    def get(self, name: str) -> SignIn | None:
        """The sign-in of this provider; None when there is none. Raises: as `all`."""
        return self.all().get(name)

    def put(self, name: str, sign_in: SignIn) -> SignIn | None:
        """Keep a new sign-in; the one it replaces, None when there was none.

        Raises: UsageError when there are too many; as `all`; OSError.
        """
        with self._alone():
            there = dict(self.all())
            if name not in there and len(there) >= MOST:
                raise UsageError(
                    f"There are {MOST} sign-ins, the most there may be.", hint="fermix auth status"
                )
            before = there.get(name)
            self._write({**there, name: sign_in})
            return before

    def advance(self, name: str, before: SignIn, after: SignIn) -> bool:
        """Put renewed tokens in the place of `before`; False when it is not there any more.

        This is what a logout, or a new sign-in, wins against a renewal that was under way.
        Raises: as `all`; OSError.
        """
        with self._alone():
            there = dict(self.all())
            present = there.get(name)
            if present is None or (present.id, present.refresh) != (before.id, before.refresh):
                return False
            self._write({**there, name: after})
            return True

    def refuse(self, name: str, before: SignIn, reason: str) -> bool:
        """Note that the issuer ended this sign-in, and drop its tokens; False as in `advance`.

        Raises: as `all`; OSError.
        """
        ended = replace(before, access=Secret(""), refresh=Secret(""), refused=reason)
        return self.advance(name, before, ended)

    def remove(self, name: str) -> SignIn | None:
        """Forget a sign-in; durable when it returns. None when there was none.

        Raises: as `all`; OSError.
        """
        with self._alone():
            there = dict(self.all())
            gone = there.pop(name, None)
            if gone is not None:
                self._write(there)
            return gone

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process writes meanwhile. What is locked is the folder: the file itself is replaced."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self._kept.forget()
            yield
        finally:
            # Not by closing alone: gevent's `close` may wait for the hub's next turn.
            fcntl.flock(folder, fcntl.LOCK_UN)
            os.close(folder)

    def _write(self, sign_ins: Mapping[str, SignIn]) -> None:
        rows = {name: _row(each) for name, each in sorted(sign_ins.items())}
        raw = msgspec.json.format(msgspec.json.encode(_File(VERSION, rows)), indent=2)
        write_atomically(self.path, raw + b"\n", mode=0o600)
        self._kept.forget()

    def _parse(self, raw: bytes) -> Mapping[str, SignIn]:
        repair = f"Sign in anew after: rm {shlex.quote(str(self.path))}"
        try:
            file = msgspec.json.decode(raw, type=_File)
        except (ValueError, RecursionError) as exc:  # the message tells the place, never the content
            raise ConfigError(f"{self.path} is damaged: {exc}.", hint=repair) from None
        if file.version != VERSION:
            raise ConfigError(
                f"{self.path} has version {file.version}; this fermix reads {VERSION}.", hint=repair
            )
        return {name: _sign_in(row) for name, row in file.sign_ins.items()}


def _row(each: SignIn) -> _Row:
    return _Row(
        id=each.id,
        issuer=each.issuer,
        access_token=each.access.reveal(),
        refresh_token=each.refresh.reveal(),
        expires_ms=each.expires_ms,
        signed_in_ms=each.signed_in_ms,
        renewed_ms=each.renewed_ms,
        account_id=each.account_id,
        label=each.label,
        plan=each.plan,
        refused=each.refused,
    )


def _sign_in(row: _Row) -> SignIn:
    return SignIn(
        id=row.id,
        issuer=row.issuer,
        access=Secret(row.access_token),
        refresh=Secret(row.refresh_token),
        expires_ms=row.expires_ms,
        signed_in_ms=row.signed_in_ms,
        renewed_ms=row.renewed_ms,
        account_id=row.account_id,
        label=row.label,
        plan=row.plan,
        refused=row.refused,
    )
