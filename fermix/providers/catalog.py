"""Which models this home knows of, told from files alone: no connection is made, nothing is started."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fermix.errors import FermixError
from fermix.paths import Home
from fermix.providers.local_files import find, is_available
from fermix.providers.settings import LOCAL, NamedProviderSettings, ProviderSettings

BUILT_IN = "smollm2-135m-instruct"
"""The model that comes with fermix."""


class ModelSettings(Protocol):
    """The sections of the settings that name models."""

    @property
    def provider(self) -> ProviderSettings: ...

    @property
    def providers(self) -> Mapping[str, NamedProviderSettings]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFact:
    """One model that could answer."""

    name: str
    provider: str
    """What `provider.name` must be for it to answer."""
    where: str
    """A file, an address, or `inside fermix`."""
    size_bytes: int | None
    """None where nobody can tell without asking."""
    in_use: bool


def list_models(settings: ModelSettings, home: Home, environment: Mapping[str, str]) -> list[ModelFact]:
    """The built-in model, GGUF files in the home, then the configured providers by name."""
    chosen = settings.provider
    files = local_models(home, environment)
    wanted = chosen.model if chosen.model in files else BUILT_IN
    facts = [
        ModelFact(
            name=name,
            provider=LOCAL,
            where=str(path) if path else "inside fermix",
            size_bytes=path.stat().st_size if path else None,
            in_use=chosen.name == LOCAL and name == wanted,
        )
        for name, path in files.items()
    ]
    for name, table in sorted(settings.providers.items()):
        if name == LOCAL:
            continue
        in_use = chosen.name == name
        model = (chosen.model if in_use else None) or table.model
        facts.append(
            ModelFact(
                name=model or "(no model set)",
                provider=name,
                where=table.base_url or "(no address set)",
                size_bytes=None,
                in_use=in_use,
            )
        )
    return facts


def local_models(home: Home, environment: Mapping[str, str]) -> dict[str, Path | None]:
    """Names of the models that can run on this machine -> their file; None for one still packed."""
    models: dict[str, Path | None] = {}
    if is_available(environment):
        models[BUILT_IN] = None if getattr(sys, "frozen", False) else _installed()
    try:
        models |= {path.stem: path for path in sorted(home.models.glob("*.gguf")) if path.is_file()}
    except OSError:
        return models
    return models


def _installed() -> Path | None:
    """The installed model's file; from source, `find` only looks."""
    try:
        return find().model_path
    except FermixError:
        return None
