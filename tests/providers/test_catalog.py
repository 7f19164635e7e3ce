"""The list of models is told from files alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fermix.paths import Home
from fermix.providers.catalog import BUILT_IN, list_models
from fermix.providers.settings import NamedProviderSettings, ProviderSettings


@dataclass
class Chosen:
    provider: ProviderSettings = field(default_factory=ProviderSettings)
    providers: Mapping[str, NamedProviderSettings] = field(default_factory=dict)


def listed(settings: Chosen, home: Path) -> list[tuple[str, str, bool]]:
    return [(fact.name, fact.provider, fact.in_use) for fact in list_models(settings, Home(home), {})]


def test_with_nothing_configured_the_built_in_model_is_in_use(tmp_path: Path) -> None:
    assert listed(Chosen(), tmp_path) == [(BUILT_IN, "local", True)]
    (fact,) = list_models(Chosen(), Home(tmp_path), {})
    assert fact.size_bytes and fact.size_bytes > 50_000_000
    assert fact.where.endswith(".gguf")


def test_files_in_the_home_and_configured_providers_are_listed(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "big.gguf").write_bytes(b"x")
    named = {
        "mine": NamedProviderSettings(base_url="https://host/v1", model="m"),
        "half": NamedProviderSettings(),
    }
    assert listed(Chosen(ProviderSettings(name="mine", model="n"), named), tmp_path) == [
        (BUILT_IN, "local", False),
        ("big", "local", False),
        ("(no model set)", "half", False),
        ("n", "mine", True),
    ]
    assert listed(Chosen(ProviderSettings(model="big")), tmp_path)[:2] == [
        (BUILT_IN, "local", False),
        ("big", "local", True),
    ]
