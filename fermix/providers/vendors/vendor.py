"""What a vendor is: a function from settings to a provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fermix.clock import Clock
from fermix.paths import Home
from fermix.process import Helper, HelperSpec
from fermix.providers.port import Provider
from fermix.providers.settings import LocalModelSettings, NamedProviderSettings
from fermix.secret import Secret
from fermix.tasks import ThreadPool

if TYPE_CHECKING:
    from fermix.auth.oauth.keeper import SignIns


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What vendors are given to work with."""

    secret: Callable[[str], Secret]
    """The secret behind a reference like `@secret:NAME`; raises SecretMissing."""
    home: Home
    environment: Mapping[str, str]
    """The daemon's own; where the program finds itself and its unpacked files."""
    start_helper: Callable[[HelperSpec], Helper]
    pool: ThreadPool
    """For what would hold up the hub, such as writing a file."""
    local: LocalModelSettings
    clock: Clock
    sign_ins: Callable[[], SignIns]
    """Made when it is first asked for: few vendors are signed in to."""


class Vendor(Protocol):
    """Makes a provider of one kind."""

    def __call__(
        self, name: str, model: str | None, settings: NamedProviderSettings | None, parts: Parts
    ) -> Provider:
        """`model` counts before the one in `settings`; `settings` is None without a table.

        Raises: ProviderError when something needed was left out, with the command that adds it.
        """
        ...
