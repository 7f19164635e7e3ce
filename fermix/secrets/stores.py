"""All secret stores in their order: environment first, then the home's private files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from fermix.config.references import environment_variable, secret_name
from fermix.errors import ConfigError, SecretMissing, SettingInvalid
from fermix.paths import Home
from fermix.secret import Secret
from fermix.secrets.environment import EnvironmentSecrets
from fermix.secrets.files import FileSecrets
from fermix.secrets.port import SecretStore, WritableStore, check_name
from fermix.secrets.redact import Redactor


class SecretStores:
    """Looks a secret up where it may be; tells `redactor` every value it hands out."""

    def __init__(
        self, home: Home, environment: Mapping[str, str], *, redactor: Redactor | None = None
    ) -> None:
        self._home = home
        self._written: WritableStore = FileSecrets(home.secrets)
        self._stores: tuple[SecretStore, ...] = (EnvironmentSecrets(environment), self._written)
        self._redactor = redactor or Redactor()

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
        raise SecretMissing(
            f"No secret named {name!r}. Looked for {environment_variable(name)} in the environment "
            f"and for {self._home.secrets / name}.",
            hint=self._storing(name),
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
                hint=self._storing(name),
            )
        return secret

    def _storing(self, name: str) -> str:
        """The command that stores it; typed into `cat`, the secret ends up in no shell history."""
        path = self._home.secrets / name
        return f"(umask 077; mkdir -p {shlex.quote(str(path.parent))}; cat > {shlex.quote(str(path))})"

    def set(self, name: str, secret: Secret) -> None:
        """Keep the secret in the home's private files.

        Raises: HomeUnsafe, ConfigError, UsageError.
        """
        self._written.set(name, secret)
        self._redactor.add(secret)

    def remove(self, name: str) -> None:
        """Forget the secret kept in the home; one in the environment stays.

        Raises: SecretMissing when the home does not keep it.
        """
        if not self._written.remove(name):
            raise SecretMissing(f"No secret named {name!r} is kept in {self._home.secrets}.")

    def names(self) -> list[str]:
        """Names of all secrets, sorted, each once."""
        return sorted({name for store in self._stores for name in store.names()})
