"""Secrets by name: looked up in the environment, then in private files; never in config.toml."""

from __future__ import annotations

from fermix.secrets.redact import Redactor, StreamRedactor
from fermix.secrets.stores import SecretStores

__all__ = ["Redactor", "SecretStores", "StreamRedactor"]
