"""Any server with the OpenAI chat-completions wire, at the address the owner wrote."""

from __future__ import annotations

from fermix.providers.vendors.remote import remote
from fermix.providers.vendors.spec import VendorSpec

SPEC = VendorSpec(name="openai_compatible", api="openai_chat", base_url=None)
VENDOR = remote(SPEC)
