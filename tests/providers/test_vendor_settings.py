"""What the table of a provider says reaches the requests of its vendor."""

from __future__ import annotations

from typing import Any

import pytest

from fermix.daemon.sections import load_settings
from fermix.errors import SettingInvalid
from fermix.paths import Home
from fermix.providers.build import build, spec_of
from fermix.providers.known_models import KNOWN, UNKNOWN, facts_of
from fermix.providers.port import Done
from fermix.providers.settings import VENDOR_NAMES, NamedProviderSettings, ProviderSettings, vendor_of
from fermix.providers.vendors.remote import base_of
from fermix.providers.vendors.vendor import Parts
from fermix.testing.model_script import Script, Step
from fermix.testing.model_server import ModelServer, Recorded

from .conftest import ask, end_of


def asked(parts: Parts, vendor: str, **table: Any) -> Recorded:
    """The request a vendor's model got."""
    with ModelServer(script=Script(default=Step(say="ok"))) as server:
        settings = NamedProviderSettings(
            **{"vendor": vendor, "model": "m", "base_url": server.base_url, **table}
        )
        provider = build(ProviderSettings(name="mine"), {"mine": settings}, parts=parts)
        assert isinstance(end_of(provider.stream(ask())), Done)
        provider.stop(1)
        return server.requests[0]


@pytest.mark.parametrize(
    ("vendor", "path"),
    [
        ("anthropic", "/v1/messages"),
        ("mistral", "/v1/chat/completions"),
        ("ollama", "/api/chat"),
        ("openai", "/v1/responses"),
        ("openai_compatible", "/v1/chat/completions"),
        ("openrouter", "/v1/chat/completions"),
        ("xai", "/v1/responses"),
    ],
)
def test_vendor_chooses_the_wire(parts: Parts, vendor: str, path: str) -> None:
    assert asked(parts, vendor).path == path


@pytest.mark.parametrize(
    ("vendor", "field", "value"),
    [
        ("anthropic", "output_config", {"effort": "high"}),
        ("ollama", "think", "high"),
        ("openai_compatible", "reasoning_effort", "high"),
        ("openrouter", "reasoning", {"effort": "high"}),
    ],
)
def test_effort_of_the_table_is_asked_for(parts: Parts, vendor: str, field: str, value: object) -> None:
    assert asked(parts, vendor).body.get(field) is None
    assert asked(parts, vendor, effort="high").body[field] == value


def test_name_of_a_table_is_its_vendor_where_it_is_one() -> None:
    table = NamedProviderSettings()
    assert [vendor_of(name, table) for name in ("openai", "mine", "local")] == [
        "openai",
        "openai_compatible",
        "local",
    ]
    assert vendor_of("openai", NamedProviderSettings(vendor="mistral")) == "mistral"


def test_known_vendors_need_no_address() -> None:
    for name in VENDOR_NAMES:
        spec = spec_of(name)
        if spec.base_url is not None:
            assert base_of(spec, name, NamedProviderSettings()) == spec.base_url
    written = NamedProviderSettings(base_url="http://box:11434/v1/")
    assert base_of(spec_of("ollama"), "ollama", written) == "http://box:11434"


def test_vendor_that_is_none_is_refused_in_the_settings(tmp_path: Any) -> None:
    (tmp_path / "config.toml").write_text('[providers.mine]\nvendor = "opnai"\n')
    tmp_path.chmod(0o700)
    with pytest.raises(SettingInvalid, match="vendor"):
        load_settings(Home(tmp_path), {})


def test_catalog_keeps_what_pages_say_and_knows_dated_names() -> None:
    assert facts_of("openai", "gpt-5-2025-08-07") == KNOWN["openai"]["gpt-5"]
    assert facts_of("openai", "gpt-99") == UNKNOWN
    assert facts_of("mine", "gpt-5") == UNKNOWN
    for models in KNOWN.values():
        for facts in models.values():
            price = facts.price
            assert facts.limits.window_tokens and facts.limits.window_tokens >= 200_000
            assert price is None or (price.cached < price.input < price.output and price.as_of)
