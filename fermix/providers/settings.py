"""Which provider answers, how each is reached, and how the local model runs."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting
from fermix.errors import AddressRefused
from fermix.net.address import parse_base

LOCAL = "local"
"""The provider that needs no table: a model on this machine."""
ANY_SERVER = "openai_compatible"
"""The vendor without an address of its own."""
VENDOR_NAMES = (
    "anthropic",
    "mistral",
    "ollama",
    "openai",
    "openai_codex",
    ANY_SERVER,
    "openrouter",
    "xai",
)
"""As in `build.VENDORS`, which cannot be imported here: the offline client reads this file."""


def _refused_base(url: str | None) -> str | None:
    """What was expected instead of `url`; None when it is a good base."""
    try:
        address = parse_base(url or "http://host")
    except AddressRefused as error:
        return f"an address like 'https://host/v1' ({error.message})"
    if address.path.endswith("/chat/completions"):
        return "the address without '/chat/completions' at its end"
    return None


@section("provider")
@dataclass(frozen=True)
class ProviderSettings:
    """Which model answers."""

    name: str = setting(LOCAL, "Who answers: `local`, or the NAME of a [providers.NAME] table.")
    model: str | None = setting(None, "Model to ask; counts before the one in [providers.NAME].")
    fallback: tuple[str, ...] = setting((), "Who answers when that one cannot, in this order.")


@section("providers", is_named=True)
@dataclass(frozen=True)
class NamedProviderSettings:
    """One provider: a known vendor, or any server with the OpenAI chat-completions wire."""

    vendor: str = setting(
        "",
        "Who it is; empty takes NAME if that is a known vendor, else `openai_compatible`.",
        choices=("", *VENDOR_NAMES),
    )
    base_url: str | None = setting(
        None, "Its address, as in `https://host/v1`; known vendors have one already.", check=_refused_base
    )
    api_key: str | None = setting(None, "The key, kept as a secret.", is_secret=True)
    sign_in_url: str | None = setting(
        None, "Address of who signs one in; vendors with a sign-in have one already.", check=_refused_base
    )
    model: str | None = setting(None, "Model to ask.")
    takes_tools: bool = setting(True, "Whether tools are offered to the model.")
    sees_images: bool | None = setting(
        None, "Whether images are shown to the model; left out, what is known of it counts."
    )
    effort: str = setting("", "Level of thinking that is asked for, one of the model's; empty leaves it.")
    window_tokens: int | None = setting(
        None, "Window of the model; left out, what is known of it counts.", unit="tokens", minimum=1024
    )
    max_output_tokens: int | None = setting(None, "Longest answer.", unit="tokens", minimum=1)
    max_tokens_field: str = setting(
        "",
        "Name under which the longest answer is sent; empty picks the usual one for the address.",
        choices=("", "max_tokens", "max_completion_tokens"),
    )
    usage_in_stream: bool = setting(
        True, "Whether to ask for token counts; some servers refuse the question."
    )
    connect_timeout_s: float = setting(10.0, "Longest wait for a connection.", unit="s", minimum=0.1)
    idle_timeout_s: float = setting(
        120.0, "Longest silence before and inside an answer.", unit="s", minimum=1
    )
    timeout_s: float = setting(900.0, "Longest one answer may take.", unit="s", minimum=1)


def vendor_of(name: str, table: NamedProviderSettings | None) -> str:
    """The key in `build.VENDORS` for a provider of this name and table."""
    if table is not None and table.vendor:
        return table.vendor
    return name if name == LOCAL or name in VENDOR_NAMES else ANY_SERVER


@section("local_model")
@dataclass(frozen=True)
class LocalModelSettings:
    """The model on this machine, used when `provider.name` is `local`."""

    ollama_url: str = setting(
        "http://127.0.0.1:11434",
        "Where an Ollama is looked for; empty never looks.",
        check=_refused_base,
    )
    ollama_window_tokens: int = setting(
        16_384,
        "Window an Ollama that was found is asked for; more takes more memory.",
        unit="tokens",
        minimum=2048,
    )
    context_tokens: int = setting(
        2048, "Window of the built-in model.", unit="tokens", minimum=512, maximum=8192
    )
    own_context_tokens: int = setting(
        8192,
        "Window of a model file of yours, at most what it was made for; more takes more memory.",
        unit="tokens",
        minimum=512,
    )
    output_tokens: int = setting(256, "Longest answer of the built-in model.", unit="tokens", minimum=16)
    threads: int = setting(
        0, "Threads the built-in model computes with; 0 takes half of the cores.", unit="threads", minimum=0
    )
    start_timeout_s: float = setting(60.0, "Longest wait for it to load.", unit="s", minimum=1)
    idle_minutes: float = setting(
        10.0, "After this long without use it gives its memory back.", unit="minutes", minimum=0.05
    )
