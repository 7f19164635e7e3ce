"""Anthropic, with a key of its API.

The token of a subscription is not taken: its use is meant for Anthropic's own programs.
Source: https://code.claude.com/docs/en/legal-and-compliance, read 2026-12-01.
"""

from __future__ import annotations

from fermix.providers.vendors.remote import remote
from fermix.providers.vendors.spec import VendorSpec

SPEC = VendorSpec(
    name="anthropic",
    api="anthropic_messages",
    # Source: https://platform.claude.com/docs/en/api/overview, read 2026-12-01
    base_url="https://api.anthropic.com/v1",
)
VENDOR = remote(SPEC)
