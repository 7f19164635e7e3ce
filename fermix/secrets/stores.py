"""All secret stores in their order: environment, the system's keyring, the home's private files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fermix.config.references import environment_variable, secret_name
from fermix.errors import ConfigError, SecretMissing, SettingInvalid
from fermix.paths import Home
from fermix.secret import Secret
from fermix.secrets.environment import EnvironmentSecrets
from fermix.secrets.files import FileSecrets
from fermix.secrets.port import SecretStore, WritableStore, check_name
from fermix.secrets.redact import Redactor
from fermix.secrets.settings import SecretSettings

if TYPE_CHECKING:
    from fermix.secrets.keyring_store import KeyringSecrets


@dataclass(frozen=True, slots=True)
class SecretFact:
    """One secret, without its value."""

    name: str
    store: str
    """The store that counts: `environment`, `keyring` or `files`."""


class SecretStores:
    """Looks a secret up where it may be; tells `redactor` every value it hands out."""

    def __init__(
        self,
        home: Home,
        environment: Mapping[str, str],
        *,
        redactor: Redactor | None = None,
        settings: SecretSettings | None = None,
    ) -> None:
        self._home = home
        self._settings = settings or SecretSettings()
        self._environment = EnvironmentSecrets(environment)
        self._files: WritableStore = FileSecrets(home.secrets)
        self._keyring = _keyring(home, environment, self._settings)
        self._redactor = redactor or Redactor()

    @property
    def _stores(self) -> tuple[SecretStore, ...]:
        kept: tuple[WritableStore, ...] = (
            (self._files,) if self._keyring is None else (self._keyring, self._files)
        )
        return (self._environment, *kept)

    def get(self, name: str) -> Secret:
        """The secret from the first store that has it.

        Raises: SecretMissing with the command that stores it; HomeUnsafe, ConfigError, UsageError.
        """
        check_name(name)
        for store in self._stores:
            secret = store.get(name)
            if secret is not None:
                self._redactor.add(secret)
                return secret
        places = "" if self._keyring is None else "in the keyring "
        raise SecretMissing(
            f"No secret named {name!r}. Looked for {environment_variable(name)} in the environment, "
            f"{places}and for {self._home.secrets / name}.",
            hint=storing(name),
        )

    def resolve(self, reference: str) -> Secret:
        """The secret a setting names as `@secret:NAME`.

        What settings name are keys that are sent in a header: one line of printable ASCII.

        Raises: SettingInvalid when it is no such reference (its text is not shown: it may be
        the secret itself), ConfigError when the secret is no such key, and what `get` raises.
        """
        name = secret_name(reference)
        if name is None:
            raise SettingInvalid("A secret must be named as '@secret:NAME', not written out.")
        secret = self.get(name)
        text = secret.reveal()
        if not (text.isascii() and text.isprintable()):
            raise ConfigError(
                f"The secret {name!r} is no key: it has more than one line, or characters that are not "
                "printable ASCII. Expected the key alone on one line.",
                hint=storing(name),
            )
        return secret

    def set(self, name: str, secret: Secret) -> str:
        """Keep the secret where the settings say; the store it is in now.

        `auto` takes the keyring when it is there and open, else the home's private files. What another
        of our stores had under this name is gone.

        Raises: HomeUnsafe, ConfigError, UsageError.
        """
        check_name(name)
        self._redactor.add(secret)
        if self._keyring is not None and self._wants(self._keyring):
            self._keyring.set(name, secret)
            self._files.remove(name)
            return self._keyring.name
        self._files.set(name, secret)
        if self._keyring is not None:
            self._keyring.forget(name)
        elif (_markers(self._home) / name).exists():  # it would count again under other settings
            from fermix.secrets.keyring_store import KeyringSecrets  # as below

            KeyringSecrets(self._home, {}).supersede(name)
        return self._files.name

    def kept(self, name: str) -> Secret | None:
        """The secret as fermix itself keeps it, whatever the environment says; None when it does not.

        Raises: HomeUnsafe, ConfigError, UsageError.
        """
        for store in self._stores[1:]:
            secret = store.get(name)
            if secret is not None:
                self._redactor.add(secret)
                return secret
        return None

    def remove(self, name: str) -> None:
        """Forget the secret kept in keyring and files; one in the environment stays.

        Raises: SecretMissing when none of them keeps it; ConfigError.
        """
        was_kept = [store.remove(name) for store in (self._keyring, self._files) if store is not None]
        if not any(was_kept):
            raise SecretMissing(f"No secret named {name!r} is kept.", hint="fermix secrets list")

    def names(self) -> list[str]:
        """Names of all secrets, sorted, each once."""
        return [fact.name for fact in self.facts()]

    def facts(self) -> list[SecretFact]:
        """All secrets by name, each with the store that counts; no value is read."""
        found: dict[str, str] = {}
        for store in self._stores:
            for name in store.names():
                found.setdefault(name, store.name)
        return [SecretFact(name, store) for name, store in sorted(found.items())]

    def _wants(self, keyring: KeyringSecrets) -> bool:
        return self._settings.store == "keyring" or keyring.is_usable()


def storing(name: str) -> str:
    """The command that stores a secret; it asks for the value, so it ends up in no shell history."""
    return f"fermix secrets set {name}"


def _markers(home: Home) -> Path:
    """Where the keyring's secrets have their markers; no name of a secret: those begin with a letter."""
    return home.secrets / ".keyring"


def _keyring(home: Home, environment: Mapping[str, str], settings: SecretSettings) -> KeyringSecrets | None:
    """The keyring; None when the owner wants none, and when there is none and nothing was ever kept."""
    if settings.store == "files":
        return None
    can_exist = environment.get("DBUS_SESSION_BUS_ADDRESS") or settings.store == "keyring"
    if not can_exist and not _markers(home).is_dir() and sys.platform != "darwin":
        return None
    from fermix.secrets.keyring_store import KeyringSecrets  # only where it can be: its imports cost

    return KeyringSecrets(home, environment)
