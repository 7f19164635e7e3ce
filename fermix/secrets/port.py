"""What a secret store is, and what a secret may be called."""

from __future__ import annotations

from typing import Protocol

from fermix.config.references import NAME_EXPECTED, is_secret_name
from fermix.errors import UsageError
from fermix.secret import Secret

SIZE_LIMIT_BYTES = 64 * 1024
"""A key or certificate chain fits; more is not a secret but a file."""


class SecretStore(Protocol):
    """One place secrets are looked up in.

    Contract: a store that is unsafe or unreadable raises (HomeUnsafe, ConfigError); it never
    answers None for a secret it holds but may not show.
    """

    name: str
    """What `config` and errors call it."""

    def get(self, name: str) -> Secret | None:
        """The secret; None when this store does not have it."""

    def names(self) -> list[str]:
        """Names of the secrets this store holds, sorted."""


class WritableStore(SecretStore, Protocol):
    """A store fermix itself may put secrets into."""

    def set(self, name: str, secret: Secret) -> None:
        """Keep the secret, replacing one of the same name."""

    def remove(self, name: str) -> bool:
        """Forget it; False when it was not there."""


def check_name(name: str) -> str:
    """The name itself.

    Raises: UsageError for what cannot be a secret's name.
    """
    if not is_secret_name(name):
        raise UsageError(f"{name[:80]!r} cannot be a secret's name. Expected {NAME_EXPECTED}.")
    return name
