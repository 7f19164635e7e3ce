"""Secrets in the system's keyring: a marker file in the home for each, the secret itself elsewhere.

The markers are why a home without a keyring never asks for one: a secret that has no marker is not
there, so nothing is imported, started or waited for. A marker's content is new with every `set`, so
that a running daemon notices and asks the keyring again, and otherwise keeps what it was told.
"""

from __future__ import annotations

import secrets as random_text
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from fermix.config.atomic import write_atomically
from fermix.config.home import check_private
from fermix.config.references import is_secret_name
from fermix.config.regular import open_regular
from fermix.errors import ConfigError
from fermix.paths import Home
from fermix.process.program import own_command, own_variables
from fermix.secret import Secret
from fermix.secrets.keyring_process import LIMITS_S, Outcome
from fermix.secrets.port import SIZE_LIMIT_BYTES, check_name

_MARKER_BYTES = 64
_SUPERSEDED = b"superseded"
"""A marker of a secret whose newer value is kept elsewhere; the keyring's copy does not count."""
_WORDS = {
    Outcome.LOCKED: "it is locked, or its question was not answered",
    Outcome.NO_KEYRING: "there is none that can be reached from here",
}


@dataclass(frozen=True, slots=True)
class _Known:
    """What the keyring said while a marker had this content."""

    marker: bytes
    secret: Secret


class KeyringSecrets:
    """The secrets of one home in its owner's keyring; every request has a time limit.

    Raises from every method: ConfigError when the keyring holds the secret and does not give it.
    """

    name = "keyring"

    def __init__(self, home: Home, environment: Mapping[str, str]) -> None:
        self._folder = home.secrets / ".keyring"  # no name of a secret: those begin with a letter
        self._service = f"fermix {home.root}"
        self._environment = environment
        self._known: dict[str, _Known] = {}

    def can_exist(self) -> bool:
        """Whether a keyring could be here; looks at nothing but the environment."""
        return sys.platform == "darwin" or bool(self._environment.get("DBUS_SESSION_BUS_ADDRESS"))

    def is_usable(self) -> bool:
        """Whether there is a keyring that is open now; takes up to half a second, at most 5 s."""
        return self.can_exist() and self._ask("check", "-")[0] is Outcome.DONE

    def get(self, name: str) -> Secret | None:
        """The secret; None when the keyring does not have it. Takes up to half a second once, then nothing.

        Raises: ConfigError when the keyring is locked, hangs or cannot be reached.
        """
        marker = self._marker(name)
        if marker in (None, _SUPERSEDED):
            return None
        known = self._known.get(name)
        if known is not None and known.marker == marker:
            return known.secret
        outcome, said = self._ask("get", name)
        if outcome is Outcome.ABSENT:
            return None
        if outcome is not Outcome.DONE:
            raise self._refused(name, outcome, said)
        try:
            secret = Secret(said.decode())
        except UnicodeDecodeError:
            raise ConfigError(f"The keyring's secret {name!r} is no text.") from None
        self._known[name] = _Known(marker, secret)
        return secret

    def names(self) -> list[str]:
        """Names of the secrets kept there, sorted; the keyring is not asked."""
        try:
            marked = sorted(each.name for each in self._folder.iterdir() if is_secret_name(each.name))
            return [name for name in marked if self._marker(name) not in (None, _SUPERSEDED)]
        except (OSError, ConfigError):
            return []

    def set(self, name: str, secret: Secret) -> None:
        """Keep the secret; a keyring that is locked may ask its owner first, for up to 2 minutes.

        Raises: ConfigError.
        """
        raw = secret.reveal().encode()
        if not raw.strip() or len(raw) > SIZE_LIMIT_BYTES or b"\0" in raw:
            raise ConfigError(
                f"The value of secret {name!r} is empty, too long or no text. "
                f"Expected a text of 1 to {SIZE_LIMIT_BYTES} bytes."
            )
        check_name(name)
        outcome, said = self._ask("set", name, raw)
        if outcome is not Outcome.DONE:
            raise self._refused(name, outcome, said)
        self._mark(name, random_text.token_hex(16).encode())

    def remove(self, name: str) -> bool:
        """Forget the secret; False when it was not there.

        Raises: ConfigError; then it is still kept.
        """
        path = self._folder / check_name(name)
        if self._marker(name) is None:
            return False
        outcome, said = self._ask("remove", name)
        if outcome not in (Outcome.DONE, Outcome.ABSENT):
            raise self._refused(name, outcome, said)
        path.unlink(missing_ok=True)
        self._known.pop(name, None)
        return True

    def supersede(self, name: str) -> None:
        """Let another store's secret of this name count; the keyring is not asked, its copy stays for now.

        Raises: ConfigError.
        """
        if self._marker(name) is not None:
            self._mark(name, _SUPERSEDED)

    def forget(self, name: str) -> None:
        """Let another store's secret of this name count; the keyring's own copy goes if it can."""
        path = self._folder / check_name(name)
        if self._marker(name) is not None:
            path.unlink(missing_ok=True)
            self._known.pop(name, None)
            if self.can_exist():
                self._ask("remove", name)

    def _mark(self, name: str, marker: bytes) -> None:
        path = self._folder / name
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(self._folder.parent)
            write_atomically(path, marker, mode=0o600)
        except OSError as exc:
            raise ConfigError(
                f"Cannot use {path}: {exc.strerror}.", hint=f"ls -ld {shlex.quote(str(path))}"
            ) from exc

    def _marker(self, name: str) -> bytes | None:
        path = self._folder / check_name(name)
        try:
            with open_regular(path) as stream:
                return stream.read(_MARKER_BYTES)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise ConfigError(
                f"Cannot use {path}: {exc.strerror}.", hint=f"ls -ld {shlex.quote(str(path))}"
            ) from exc

    def _ask(self, action: str, name: str, given: bytes = b"") -> tuple[Outcome, bytes]:
        """How it went and what was said: the secret for a good `get`, else the reason."""
        if not self.can_exist():
            return Outcome.NO_KEYRING, b""
        own = {key: text for key, text in self._environment.items() if not key.startswith("FERMIX_SECRET_")}
        try:
            done = subprocess.run(
                [*own_command(self._environment), "_keyring", action, self._service, name],
                input=given,
                capture_output=True,
                env={**own, **own_variables(self._environment)},
                cwd="/",
                timeout=LIMITS_S[action],
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome.FAILED, f"it did not answer within {LIMITS_S[action]} s".encode()
        except OSError as error:
            return Outcome.FAILED, str(error.strerror).encode()
        try:
            outcome = Outcome(done.returncode)
        except ValueError:
            return Outcome.FAILED, done.stderr[-200:] or f"it ended with {done.returncode}".encode()
        return outcome, done.stdout if outcome is Outcome.DONE else done.stderr[-200:]

    def _refused(self, name: str, outcome: Outcome, said: bytes) -> ConfigError:
        reason = _WORDS.get(outcome) or " ".join(said.decode("utf-8", "replace").split()) or "it failed"
        return ConfigError(
            f"The keyring was asked for the secret {name!r} in vain: {reason}.",
            hint="Unlock it, or keep the secret in a file instead: "
            f"fermix config set secrets.store files && fermix secrets set {name}",
        )
