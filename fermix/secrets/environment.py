"""Secrets from environment variables: FERMIX_SECRET_NAME holds the secret `name`."""

from __future__ import annotations

from collections.abc import Mapping

from fermix.config.references import environment_variable, is_secret_name
from fermix.secret import Secret

_PREFIX = environment_variable("")


class EnvironmentSecrets:
    """The secrets an environment holds; `-` in a name is `_` in the variable."""

    name = "environment"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def get(self, name: str) -> Secret | None:
        """The secret; None when the variable is missing or empty."""
        text = self._environment.get(environment_variable(name))
        return Secret(text) if text else None

    def names(self) -> list[str]:
        """Names in the environment, with `_` even where a setting's reference has `-`."""
        found = (
            key.removeprefix(_PREFIX).lower()
            for key, text in self._environment.items()
            if key.startswith(_PREFIX) and text
        )
        return sorted(each for each in found if is_secret_name(each))
