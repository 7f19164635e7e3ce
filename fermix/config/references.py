"""How config.toml names a secret without holding it: `@secret:NAME`."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PREFIX = "@secret:"

NAME_EXPECTED = "at most 64 small letters, digits, '-' and '_'"


def is_secret_name(text: str) -> bool:
    """Whether a secret may be called this."""
    return _NAME.fullmatch(text) is not None


def secret_name(reference: str) -> str | None:
    """The name in `@secret:NAME`; None when the text is no such reference."""
    name = reference.removeprefix(_PREFIX)
    return name if reference.startswith(_PREFIX) and is_secret_name(name) else None


def environment_variable(name: str) -> str:
    """The environment variable that may hold the secret of this name."""
    return "FERMIX_SECRET_" + name.upper().replace("-", "_")
