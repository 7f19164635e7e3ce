"""Who can answer: well-known model providers, each with its address, its models and where to get a key."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.providers.settings import LOCAL

OLLAMA = "ollama"
OTHER = "other"
OTHER_TABLE = "mine"
"""What the table of another provider is called when its owner does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One choice of the wizard."""

    name: str
    """Also the name of its table in config.toml and of its secret."""
    label: str
    base_url: str | None
    """None: it has none, or the person is asked for it."""
    preferred: tuple[str, ...] = ()
    """Models to take when nobody names one, the best first; what the server lists decides."""
    key_page: str | None = None
    """Where keys are made; None when it needs none."""

    @property
    def needs_key(self) -> bool:
        return self.key_page is not None


VENDORS = (
    Vendor(
        name=LOCAL,
        label="The small model built into fermix (needs no key, knows little, cannot use tools)",
        base_url=None,
    ),
    Vendor(
        name=OLLAMA,
        label="Ollama on this machine",
        # Source: https://docs.ollama.com/api/introduction, read 2026-12-01
        base_url="http://127.0.0.1:11434",
    ),
    Vendor(
        name="openai",
        label="OpenAI (for a ChatGPT subscription instead of a key: fermix auth login)",
        # Source: https://developers.openai.com/docs/models ("if you're not sure where to start"),
        # read 2026-11-30
        base_url="https://api.openai.com/v1",
        preferred=("gpt-5.5", "gpt-5.4", "gpt-5.4-mini", "gpt-5"),
        key_page="https://platform.openai.com/api-keys",
    ),
    Vendor(
        name="openrouter",
        label="OpenRouter (models of many providers)",
        # Source: https://openrouter.ai/docs/quickstart and https://openrouter.ai/openrouter/auto/api
        # (it picks a model for each request), read 2026-11-30
        base_url="https://openrouter.ai/api/v1",
        preferred=("openrouter/auto",),
        key_page="https://openrouter.ai/settings/keys",
    ),
    Vendor(
        name="mistral",
        label="Mistral",
        # Source: https://docs.mistral.ai/getting-started/models/, read 2026-11-30
        base_url="https://api.mistral.ai/v1",
        preferred=("mistral-medium-latest", "mistral-large-latest", "mistral-small-latest"),
        key_page="https://console.mistral.ai/api-keys",
    ),
    Vendor(
        name="xai",
        label="xAI",
        # Source: https://docs.x.ai/developers/models, read 2026-11-30
        base_url="https://api.x.ai/v1",
        preferred=("grok-4.7", "grok-4.5", "grok-4.3"),
        key_page="https://console.x.ai",
    ),
    Vendor(
        name="anthropic",
        label="Anthropic",
        # Source: https://platform.claude.com/docs/en/about-claude/models/overview, read 2026-12-01
        base_url="https://api.anthropic.com/v1",
        preferred=("claude-sonnet-5-5", "claude-sonnet-5", "claude-haiku-4-5"),
        key_page="https://console.anthropic.com/settings/keys",
    ),
    Vendor(name=OTHER, label="Another server that speaks the OpenAI protocol", base_url=None),
)
"""In the order a person is shown them."""


def vendor_named(name: str) -> Vendor | None:
    """The vendor of a table's name; None for a table of the owner's own."""
    return next((vendor for vendor in VENDORS if vendor.name == name and name != OTHER), None)
