"""OpenRouter, which passes on to many vendors; models of Anthropic want their cache marked."""

from __future__ import annotations

from dataclasses import replace

from fermix.providers.apis.wire import Quirks
from fermix.providers.vendors.remote import remote
from fermix.providers.vendors.spec import VendorSpec


def _quirks_of(model: str, quirks: Quirks) -> Quirks:
    # Source: https://openrouter.ai/docs/features/prompt-caching, read 2026-12-01
    return replace(quirks, marks_cache=model.startswith("anthropic/"))


SPEC = VendorSpec(
    name="openrouter",
    api="openai_chat",
    # Source: https://openrouter.ai/docs/quickstart, read 2026-12-01
    base_url="https://openrouter.ai/api/v1",
    # Source: https://www.openrouter.ai/docs/use-cases/reasoning-tokens, read 2026-12-01
    quirks=Quirks(nests_effort=True),
    quirks_of=_quirks_of,
)
VENDOR = remote(SPEC)
