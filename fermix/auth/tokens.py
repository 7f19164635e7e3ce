"""What the daemon asks about tokens: whose is this one, does it still count, make one, take it back."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gevent.lock import RLock

from fermix.auth.devices import Device, DeviceTokens
from fermix.auth.local import LocalToken
from fermix.auth.token import digest_of, new_token
from fermix.clock import Clock
from fermix.errors import ConfigError, OwnerError
from fermix.paths import Home
from fermix.secret import Secret
from fermix.tasks import Task, TaskGroup, ThreadPool

log = logging.getLogger(__name__)

LOCAL_NAME = "api-token"
NOTE_PAUSE_MS = 60_000
"""How exactly the file knows when a token was last used."""
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Grant:
    """A token that was found to be right."""

    name: str
    """The device's; `api-token` for the local programs'."""
    digest: bytes


class Tokens:
    """One per daemon; everything that writes runs off the hub and one after the other."""

    def __init__(
        self, home: Home, *, clock: Clock, pool: ThreadPool, know: Callable[[Secret], None]
    ) -> None:
        """`know` tells the daemon's redactor a token's value."""
        self._local = LocalToken(home.api_token)
        self._devices = DeviceTokens(home.tokens)
        self._clock = clock
        self._pool = pool
        self._know = know
        self._lock = RLock()
        self._tasks = TaskGroup("tokens")
        self._making: Task | None = None
        self._used: dict[bytes, int] = {}
        self._next_note_ms = 0
        self._troubles: dict[Path, str] = {}
        """What was last said of each file."""

    def prepare(self) -> None:
        """Make the local programs' token if it is not there; a disk that refuses is logged."""
        try:
            with self._lock:
                if self._local.get() is None:
                    self._pool.run(self._local.make, timeout_s=_TIMEOUT_S)
                    log.info("Made %s", self._local.path)
            self._local_digest()
        except OSError as error:
            self._say(self._local.path, f"Cannot make {self._local.path}: {error.strerror}")
        except ConfigError as error:
            self._say(self._local.path, str(error))

    def find(self, presented: str, *, is_local: bool) -> Grant | None:
        """Whose token this is; None when it is nobody's that counts here.

        is_local: whether the peer is a program of this machine; only then the api-token counts.
        Contract: the time it takes does not tell how much of a wrong token was right. Tokens whose file
        cannot be used do not count, which is logged.
        """
        digest = digest_of(presented)
        found: Grant | None = None
        for grant in self._known(is_local=is_local):
            if hmac.compare_digest(grant.digest, digest):
                found = grant
        if found is not None:
            self._know(Secret(presented))
            self._note_use(found)
        return found

    def counts(self, grant: Grant) -> bool:
        """Whether a token found before is still one; costs two `stat`s."""
        return any(hmac.compare_digest(each.digest, grant.digest) for each in self._known(is_local=True))

    def create(self, name: str) -> Secret:
        """A fresh device token; it is nowhere else and cannot be shown again.

        Raises: UsageError, ConfigError, HomeUnsafe, OwnerError when the disk refuses.
        """
        token = new_token()
        made = Device(name=name, digest=digest_of(token.reveal()), created_ms=self._clock.now_ms())
        self._write(lambda: self._devices.add(made))
        self._know(token)
        log.info("Made the device token %s", name)
        return token

    def revoke(self, name: str) -> bool:
        """Take a device token back, at once for running streams too; False when there is none.

        Raises: as `create`.
        """
        is_gone = self._write(lambda: self._devices.remove(name))
        if is_gone:
            log.info("Revoked the device token %s", name)
        return is_gone

    def devices(self) -> Sequence[Device]:
        """All device tokens by name. Raises: ConfigError, HomeUnsafe."""
        now = self._used
        return [
            Device(
                name=each.name,
                digest=each.digest,
                created_ms=each.created_ms,
                last_used_ms=now.get(each.digest, each.last_used_ms),
            )
            for each in self._devices.all()
        ]

    def stop(self, timeout_s: float) -> None:
        """End what is still written in the background."""
        self._tasks.stop(timeout_s)

    def _known(self, *, is_local: bool) -> list[Grant]:
        known = []
        try:
            known += [Grant(each.name, each.digest) for each in self._devices.all()]
        except ConfigError as error:
            self._say(self._devices.path, str(error))
        if is_local:
            try:
                digest = self._local_digest()
                if digest is None:
                    self._make_soon()
                else:
                    known.append(Grant(LOCAL_NAME, digest))
            except ConfigError as error:
                self._say(self._local.path, str(error))
        return known

    def _make_soon(self) -> None:
        """Somebody removed the file: the next request finds a new one."""
        if self._making is None or self._making.is_done:
            self._making = self._tasks.start(self.prepare, name="make")

    def _local_digest(self) -> bytes | None:
        token = self._local.get()
        if token is None:
            return None
        self._know(token)
        return digest_of(token.reveal())

    def _write(self, work: Callable[[], bool | None]) -> bool:
        try:
            with self._lock:
                return bool(self._pool.run(work, timeout_s=_TIMEOUT_S))
        except OSError as error:
            raise OwnerError(f"Cannot write {self._devices.path}: {error.strerror}.") from error

    def _note_use(self, grant: Grant) -> None:
        if grant.name == LOCAL_NAME:
            return
        now_ms = self._clock.now_ms()
        self._used[grant.digest] = now_ms
        if now_ms >= self._next_note_ms:
            self._next_note_ms = now_ms + NOTE_PAUSE_MS
            self._tasks.start(self._write_uses, name="note")

    def _write_uses(self) -> None:
        used, self._used = self._used, {}
        try:
            self._write(lambda: self._devices.note_use(used))
        except OwnerError as error:
            log.debug("When tokens were used is not noted: %s", error)

    def _say(self, path: Path, trouble: str) -> None:
        """Log what is wrong with a token file, once."""
        if trouble != self._troubles.get(path):
            self._troubles[path] = trouble
            log.error("%s", trouble)
