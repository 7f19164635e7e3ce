"""OpenAI, on the wire its reasoning models are made for."""

from __future__ import annotations

from fermix.providers.apis.wire import Quirks
from fermix.providers.vendors.remote import remote
from fermix.providers.vendors.spec import VendorSpec

SPEC = VendorSpec(
    name="openai",
    api="openai_responses",
    # Source: https://platform.openai.com/docs/api-reference/introduction, read 2026-12-01
    base_url="https://api.openai.com/v1",
    # Source: https://platform.openai.com/docs/guides/prompt-caching, read 2026-12-01
    quirks=Quirks(takes_cache_key=True),
)
VENDOR = remote(SPEC)
