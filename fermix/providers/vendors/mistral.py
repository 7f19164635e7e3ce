"""Mistral, on the chat wire with short ids of tool calls."""

from __future__ import annotations

from fermix.providers.apis.wire import Quirks
from fermix.providers.vendors.remote import remote
from fermix.providers.vendors.spec import VendorSpec

SPEC = VendorSpec(
    name="mistral",
    api="openai_chat",
    # Source: https://docs.mistral.ai/api, read 2026-12-01 (usage stands in the last chunk unasked)
    base_url="https://api.mistral.ai/v1",
    quirks=Quirks(has_short_ids=True, usage_in_stream=False),
)
VENDOR = remote(SPEC)
