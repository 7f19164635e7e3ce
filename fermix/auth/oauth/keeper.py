"""Gives a sign-in whose token counts; renews it once, whoever asks, in however many processes.

Renewing rotates tokens: the old one counts no more, and an answer that is not stored is a lost login. So
a renewal holds a lock across processes, runs apart from whoever asked for it (a turn may be stopped in the
middle, a renewal may not), and is stored before anyone uses it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from gevent.event import Event

from fermix.auth.oauth.issuer import Issuer
from fermix.auth.oauth.store import SignIn, SignInStore
from fermix.clock import Clock
from fermix.errors import DeadlineExceeded, FermixError, IssuerBusy, OwnerError, SignInEnded, SignInMissing
from fermix.paths import Home
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline, TaskGroup, ThreadPool, sleep

log = logging.getLogger(__name__)

Result = TypeVar("Result")

AHEAD_MS = 300_000
"""A token that ends this soon is renewed before it is used."""
LOCK_S = 90.0
"""Longest wait for another process that renews; the issuer itself is given 30 s."""
_LOCK_PAUSES_S = (0.005, 0.01, 0.02, 0.05, 0.1)
_FILE_S = 30.0
_SPARE_S = 20.0
"""For how long a token that still counts is used before a renewal that failed is tried again."""


class _Renewal:
    """One renewal under way; many may wait for it."""

    def __init__(self) -> None:
        self.is_over = Event()
        self.sign_in: SignIn | None = None
        self.error: FermixError | None = None


class SignIns:
    """One per process: the sign-ins of a home, each renewed where it must be."""

    def __init__(
        self, home: Home, *, clock: Clock, pool: ThreadPool, know: Callable[[Secret], None]
    ) -> None:
        """`know` tells the redactor a token's value."""
        self._home = home
        self._store = SignInStore(home.sign_ins)
        self._clock = clock
        self._pool = pool
        self._know = know
        self._tasks = TaskGroup("sign-ins")
        self._renewals: dict[str, _Renewal] = {}
        self._unsaved: dict[str, tuple[SignIn, SignIn]] = {}
        """Before and after of a renewal the disk refused; it counts here, and is stored when it can be."""
        self._rests_until_s: dict[str, float] = {}

    def all(self) -> Mapping[str, SignIn]:
        """Every sign-in by its provider's name. Raises: HomeUnsafe, ConfigError."""
        return self._store.all()

    def get(
        self,
        name: str,
        issuer: Issuer,
        *,
        cancel: Cancel,
        deadline: Deadline,
        refused: Secret | None = None,
    ) -> SignIn:
        """A sign-in whose access token counts, as far as one can know.

        `refused`: a token that was just refused; one other than that is wanted.
        Raises: SignInMissing, SignInEnded, SignInFailed, IssuerBusy, Cancelled, DeadlineExceeded, and as
        `all`.
        """
        sign_in = self.peek(name, issuer)
        if refused is None or sign_in.access != refused:
            left_ms = None if sign_in.expires_ms is None else sign_in.expires_ms - self._clock.now_ms()
            if left_ms is None or left_ms > AHEAD_MS:
                return sign_in
            if left_ms > 0 and self._clock.monotonic_s() < self._rests_until_s.get(name, 0.0):
                return sign_in
            try:
                return self._renewed(name, issuer, sign_in, cancel, deadline)
            except IssuerBusy as error:
                if left_ms <= 0:
                    raise
                log.info("%s goes on with the token it has: %s", name, error)
                self._rests_until_s[name] = self._clock.monotonic_s() + _SPARE_S
                return sign_in
        return self._renewed(name, issuer, sign_in, cancel, deadline)

    def peek(self, name: str, issuer: Issuer) -> SignIn:
        """The sign-in as it is now, without a wait. Raises: SignInMissing, SignInEnded, and as `all`."""
        sign_in = self._store.get(name)
        hint = f"fermix auth login {name}"
        if sign_in is None:
            raise SignInMissing(f"Nobody is signed in to {name!r}.", hint=hint)
        before, after = self._unsaved.get(name, (None, None))
        if before is not None and after is not None and before.id == sign_in.id:
            sign_in = after if sign_in.refresh == before.refresh else sign_in
        if sign_in.issuer != issuer.origin:
            raise SignInMissing(
                f"The sign-in of {name!r} is from {sign_in.issuer}, and its settings name {issuer.origin}.",
                hint=hint,
            )
        if sign_in.refused is not None:
            raise SignInEnded(f"The sign-in of {name!r} has ended: {sign_in.refused}", hint=hint)
        self._learn(sign_in)
        return sign_in

    def put(self, name: str, sign_in: SignIn, issuer: Issuer) -> None:
        """Keep a new sign-in; the one it replaces is taken back at its issuer as far as that goes.

        Raises: UsageError, OwnerError when it cannot be stored; HomeUnsafe, ConfigError.
        """
        self._learn(sign_in)
        before = self._written(partial(self._store.put, name, sign_in))
        self._unsaved.pop(name, None)
        if before is not None and before.refused is None:
            issuer.revoke(before)

    def remove(self, name: str, issuer: Issuer | None) -> tuple[SignIn | None, bool]:
        """Forget a sign-in at once, then tell its issuer: what was forgotten, and whether that heard.

        A renewal under way finds it gone and gives up what it got. Raises: as `put`.
        """
        gone = self._written(partial(self._store.remove, name))
        unsaved = self._unsaved.pop(name, None)
        newest = unsaved[1] if unsaved is not None else gone
        heard = newest is not None and issuer is not None and issuer.revoke(newest)
        return gone, heard

    def stop(self, timeout_s: float) -> None:
        """Let renewals come to their end for a while: one that is cut may be a lost login."""
        if not self._tasks.join(timeout_s):
            log.warning("A renewal of a sign-in was cut short")
        self._tasks.stop(1.0)

    def _renewed(
        self, name: str, issuer: Issuer, stale: SignIn, cancel: Cancel, deadline: Deadline
    ) -> SignIn:
        """The sign-in after a renewal that this or another caller began."""
        cancel.check()
        renewal = self._renewals.get(name)
        if renewal is None:
            renewal = self._renewals[name] = _Renewal()
            self._tasks.start(partial(self._run, name, issuer, stale, renewal), name="renew")
        awake = Event()
        forget = cancel.on_set(awake.set)
        renewal.is_over.rawlink(lambda _: awake.set())
        try:
            awake.wait(deadline.remaining_s())
        finally:
            forget()
        if renewal.sign_in is not None:
            return renewal.sign_in
        if renewal.error is not None:
            raise renewal.error
        cancel.check()
        raise DeadlineExceeded(f"The renewal of the sign-in of {name!r} took too long.")

    def _run(self, name: str, issuer: Issuer, stale: SignIn, renewal: _Renewal) -> None:
        try:
            with self._alone(name):
                renewal.sign_in = self._renew(name, issuer, stale)
        except FermixError as error:
            renewal.error = error
        finally:
            if renewal.sign_in is None and renewal.error is None:
                renewal.error = IssuerBusy(f"The sign-in of {name!r} was not renewed.")
            self._renewals.pop(name, None)
            renewal.is_over.set()

    def _renew(self, name: str, issuer: Issuer, stale: SignIn) -> SignIn:
        """Alone: what another process renewed meanwhile, else what the issuer gives."""
        self._save_again(name)
        present = self.peek(name, issuer)
        if (present.id, present.access) != (stale.id, stale.access):
            return present
        if not present.refresh.reveal():
            reason = "it has no token to renew it with"
            self._written(partial(self._store.refuse, name, present, reason))
            raise SignInEnded(
                f"The sign-in of {name!r} has ended: {reason}.", hint=f"fermix auth login {name}"
            )
        try:
            after = issuer.renew(present)
        except SignInEnded as error:
            # Told apart from a busy issuer, which keeps the sign-in: this one is over.
            if not self._written(partial(self._store.refuse, name, present, error.message)):
                return self.peek(name, issuer)  # signed out meanwhile, or anew
            raise SignInEnded(
                f"The sign-in of {name!r} has ended: {error.message}", hint=f"fermix auth login {name}"
            ) from error
        self._learn(after)
        try:
            is_kept = self._written(partial(self._store.advance, name, present, after))
        except OwnerError as error:
            log.error("The renewed sign-in of %s is only in memory: %s", name, error)
            self._unsaved[name] = (present, after)
            return after
        if not is_kept:
            log.info("%s was signed out while its sign-in was renewed", name)
            issuer.revoke(after)
            return self.peek(name, issuer)
        log.info("The sign-in of %s was renewed", name)
        return after

    def _save_again(self, name: str) -> None:
        """Store what the disk refused before; still refused, it stays in memory."""
        if (pair := self._unsaved.get(name)) is None:
            return
        try:
            self._written(partial(self._store.advance, name, *pair))
        except OwnerError as error:
            raise IssuerBusy(f"The sign-in of {name!r} cannot be stored: {error}") from error
        self._unsaved.pop(name, None)

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """No other process renews this sign-in meanwhile. Raises: IssuerBusy."""
        path = self._lock_path(name)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise IssuerBusy(f"Cannot use {path}: {error.strerror}.") from error
        try:
            _lock(lock, name)
            yield
        finally:
            # Not by closing alone: gevent's `close` may wait for the hub's next turn.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def _lock_path(self, name: str) -> Path:
        digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]
        return self._home.sign_ins.with_name(f".auth-{digest}.lock")

    def _written(self, work: Callable[[], Result]) -> Result:
        try:
            return self._pool.run(work, timeout_s=_FILE_S)
        except OSError as error:
            raise OwnerError(f"Cannot write {self._store.path}: {error.strerror}.") from error

    def _learn(self, sign_in: SignIn) -> None:
        for token in (sign_in.access, sign_in.refresh):
            if token.reveal():
                self._know(token)


def _lock(descriptor: int, name: str) -> None:
    """Wait for the lock without holding up the hub. Raises: IssuerBusy."""
    deadline = Deadline.after(LOCK_S)
    tries = 0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if deadline.is_over():
                raise IssuerBusy(
                    f"Another fermix has been renewing the sign-in of {name!r} for {LOCK_S:g} s."
                ) from None
        sleep(_LOCK_PAUSES_S[min(tries, len(_LOCK_PAUSES_S) - 1)])
        tries += 1
