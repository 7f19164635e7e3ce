"""Which models this home knows of, told from files alone: no connection is made, nothing is started."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fermix.errors import FermixError
from fermix.paths import Home
from fermix.providers.gguf import FileFacts
from fermix.providers.gguf import facts_of as facts_of_file
from fermix.providers.known_models import facts_of
from fermix.providers.learned import Learned, recall
from fermix.providers.limits import FREE, Price
from fermix.providers.local_files import find, is_available
from fermix.providers.settings import (
    ANY_SERVER,
    LOCAL,
    LocalModelSettings,
    NamedProviderSettings,
    ProviderSettings,
    vendor_of,
)

BUILT_IN = "smollm2-135m-instruct"
"""The model that comes with fermix."""


class ModelSettings(Protocol):
    """The sections of the settings that name models."""

    @property
    def provider(self) -> ProviderSettings: ...

    @property
    def providers(self) -> Mapping[str, NamedProviderSettings]: ...

    @property
    def local_model(self) -> LocalModelSettings: ...


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
    window_tokens: int | None = None
    """None where it is not known."""
    takes_tools: bool = True
    sees_images: bool = False
    price: Price | None = None
    """None where it is not known."""


def list_models(settings: ModelSettings, home: Home, environment: Mapping[str, str]) -> list[ModelFact]:
    """The built-in model, GGUF files in the home, then the configured providers by name."""
    chosen = settings.provider
    files = local_models(home, environment)
    wanted = chosen.model if chosen.model in files else BUILT_IN
    local = settings.local_model
    facts = [
        _of_file(name, path, local, chosen.name == LOCAL and name == wanted) for name, path in files.items()
    ]
    for name, table in sorted(settings.providers.items()):
        if name == LOCAL:
            continue
        in_use = chosen.name == name
        facts.append(
            _of_table(home, name, table, (chosen.model if in_use else None) or table.model, in_use)
        )
    return facts


def _of_file(name: str, path: Path | None, local: LocalModelSettings, in_use: bool) -> ModelFact:
    """The built-in model reads only as much as keeps it quick."""
    told = facts_of_file(path) if path and name != BUILT_IN else FileFacts(local.context_tokens)
    return ModelFact(
        name=name,
        provider=LOCAL,
        where=str(path) if path else "inside fermix",
        size_bytes=path.stat().st_size if path else None,
        in_use=in_use,
        window_tokens=min(told.window_tokens or local.own_context_tokens, local.own_context_tokens),
        takes_tools=told.takes_tools,
        price=FREE,
    )


def _of_table(
    home: Home, name: str, table: NamedProviderSettings, model: str | None, in_use: bool
) -> ModelFact:
    vendor = vendor_of(name, table)
    kept = recall(home, name, model=model) if model else None
    known = (kept.learned if kept else Learned()).added_to(facts_of(vendor, model or ""))
    limits = known.limits
    return ModelFact(
        name=model or "(no model set)",
        provider=name,
        where=table.base_url or (vendor if vendor != ANY_SERVER else "(no address set)"),
        size_bytes=None,
        in_use=in_use,
        window_tokens=table.window_tokens or limits.window_tokens,
        takes_tools=table.takes_tools and limits.takes_tools,
        sees_images=limits.sees_images if table.sees_images is None else table.sees_images,
        price=known.price,
    )


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
