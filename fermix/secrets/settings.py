"""What the owner can say about where secrets are kept."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting


@section("secrets")
@dataclass(frozen=True)
class SecretSettings:
    """[secrets] section."""

    store: str = setting(
        "auto",
        "Where new secrets are kept: the system's `keyring`, private `files` of the home, or with `auto` "
        "the keyring where there is one. With `files` no keyring is ever asked.",
        choices=("auto", "keyring", "files"),
    )
