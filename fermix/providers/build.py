"""Vendors by dotted path, and the provider the settings ask for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import cast

from fermix.errors import ProviderError
from fermix.providers.chain import Chain
from fermix.providers.port import Provider
from fermix.providers.settings import LOCAL, VENDOR_NAMES, NamedProviderSettings, ProviderSettings
from fermix.providers.settings import vendor_of as vendor_of
from fermix.providers.vendors.spec import VendorSpec
from fermix.providers.vendors.vendor import Parts, Vendor

VENDORS = {
    LOCAL: "fermix.providers.vendors.local:VENDOR",
    **{name: f"fermix.providers.vendors.{name}:VENDOR" for name in VENDOR_NAMES},
}
"""A name that is not here, but has a [providers.NAME] table, is an `openai_compatible` one."""

SIGN_INS = {"openai_codex": "fermix.providers.vendors.openai_codex:SIGN_IN"}
"""Vendors with a sign-in, and the issuer's data by dotted path.

Anthropic is not among them: tokens of its subscriptions are meant for its own programs alone.
Source: https://code.claude.com/docs/en/legal-and-compliance ("Authentication and credential use"),
read 2026-12-01.
"""

APIS = {
    "openai_chat": "fermix.providers.apis.openai_chat:API",
    "openai_responses": "fermix.providers.apis.openai_responses:API",
    "anthropic_messages": "fermix.providers.apis.anthropic_messages:API",
    "ollama_chat": "fermix.providers.apis.ollama_chat:API",
}
"""Every wire API there is; the contract suite goes through them."""


def build(
    settings: ProviderSettings, named: Mapping[str, NamedProviderSettings], *, parts: Parts
) -> Provider:
    """The provider that answers from now on; opens no connection and starts nothing.

    Raises: ProviderError when the settings name none, or leave out what its vendor needs.
    """
    name = settings.name
    if name not in VENDORS and name not in named:
        available = sorted({*VENDORS, *named})
        near = difflib.get_close_matches(name, available, 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ProviderError(
            f"No provider named {name!r}.{meant} Available: {', '.join(available)}.",
            hint=f"fermix config set providers.{name}.base_url https://HOST/v1",
        )
    vendor = cast(Vendor, load(VENDORS[vendor_of(name, named.get(name))]))
    return vendor(name, settings.model, named.get(name), parts)


def spec_of(vendor: str) -> VendorSpec:
    """The data of a vendor that is reached over the network."""
    return cast(VendorSpec, load(VENDORS[vendor].replace(":VENDOR", ":SPEC")))


def build_chain(
    settings: ProviderSettings, named: Mapping[str, NamedProviderSettings], *, parts: Parts
) -> Chain:
    """The provider that answers from now on, with those behind it that take over when it cannot.

    Raises: ProviderError as `build`, and when one stands in the chain twice.
    """
    names = [settings.name, *settings.fallback]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise ProviderError(
            f"The provider {twice!r} stands twice in the chain {', '.join(names)}.",
            hint="fermix config set provider.fallback '[…]'",
        )
    behind = (ProviderSettings(name=name) for name in settings.fallback)
    return Chain([build(each, named, parts=parts) for each in (settings, *behind)], clock=parts.clock)


def load(path: str) -> object:
    """The value at a dotted path like `package.module:NAME`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
