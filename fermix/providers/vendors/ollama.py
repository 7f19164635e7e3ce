"""An Ollama at an address its owner wrote, on its own wire; `local` finds one by itself."""

from __future__ import annotations

from fermix.providers.vendors.remote import remote
from fermix.providers.vendors.spec import VendorSpec

SPEC = VendorSpec(
    name="ollama",
    api="ollama_chat",
    # Source: https://docs.ollama.com/api/introduction, read 2026-12-01
    base_url="http://127.0.0.1:11434",
    list_path="/api/tags",
    shows_path="/api/show",
    # Its own default of 4,096 tokens is less than instructions, tools and a page of text need.
    # Source: https://docs.ollama.com/context-length, read 2026-12-01
    window_tokens=16_384,
    trim="/v1",
)
VENDOR = remote(SPEC)
