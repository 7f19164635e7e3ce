"""xAI, on the responses wire; its chat wire is kept for older programs only."""

from __future__ import annotations

from fermix.providers.apis.wire import Quirks
from fermix.providers.vendors.remote import remote
from fermix.providers.vendors.spec import VendorSpec

SPEC = VendorSpec(
    name="xai",
    api="openai_responses",
    # Source: https://docs.x.ai/developers/models, read 2026-12-01
    base_url="https://api.x.ai/v1",
    # Source: https://docs.x.ai/developers/grok-4-7, read 2026-12-01 (without it a cache is often missed)
    quirks=Quirks(takes_cache_key=True),
)
VENDOR = remote(SPEC)
