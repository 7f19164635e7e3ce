"""The list of models is told from files alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fermix.paths import Home
from fermix.providers.catalog import BUILT_IN, list_models
from fermix.providers.learned import Kept, Learned, keep
from fermix.providers.limits import FREE, Price
from fermix.providers.settings import LocalModelSettings, NamedProviderSettings, ProviderSettings


@dataclass
class Chosen:
    provider: ProviderSettings = field(default_factory=ProviderSettings)
    providers: Mapping[str, NamedProviderSettings] = field(default_factory=dict)
    local_model: LocalModelSettings = field(default_factory=LocalModelSettings)


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


def test_window_and_price_are_told_where_they_are_known(tmp_path: Path) -> None:
    home = Home(tmp_path)
    price = Price(input=1, output=2, cached=3, written=4, as_of="2026-12-01")
    learned = Learned(window_tokens=9000, sees_images=True, price=price)
    keep(home, "router", Kept(learned, 1), base_url="https://host", model="x/y")
    named = {
        "anthropic": NamedProviderSettings(model="claude-sonnet-5-5"),
        "box": NamedProviderSettings(base_url="https://host/v1", model="m", window_tokens=5000),
        "mine": NamedProviderSettings(vendor="ollama", model="qwen"),
        "router": NamedProviderSettings(vendor="openrouter", model="x/y"),
        "xai": NamedProviderSettings(model="grok-9"),
    }

    facts = {fact.provider: fact for fact in list_models(Chosen(providers=named), home, {})}

    assert {name: fact.window_tokens for name, fact in facts.items() if name != "local"} == {
        "anthropic": 1_000_000,
        "box": 5000,
        "mine": None,
        "router": 9000,
        "xai": None,
    }
    assert facts["router"].price == price and facts["router"].sees_images
    assert facts["anthropic"].price is not None and facts["anthropic"].price.output == 10_000_000
    assert (facts["mine"].price, facts["local"].price) == (FREE, FREE)
    assert facts["local"].window_tokens == 2048
    assert (facts["xai"].price, facts["box"].price) == (None, None)
    assert (facts["anthropic"].where, facts["mine"].where) == ("anthropic", "ollama")
