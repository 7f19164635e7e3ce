"""Makes a provider from a vendor's data and the owner's settings."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import cast

from fermix.errors import ProviderError
from fermix.net.door import OwnerDoor
from fermix.providers.apis.wire import Quirks, Route, WireApi
from fermix.providers.client import HttpProvider
from fermix.providers.known_models import facts_of
from fermix.providers.learned import Learned
from fermix.providers.port import Provider
from fermix.providers.settings import NamedProviderSettings
from fermix.providers.vendors.learning import SAFE_WINDOW_TOKENS, LearningProvider, ListReader
from fermix.providers.vendors.spec import VendorSpec
from fermix.providers.vendors.vendor import Parts, Vendor
from fermix.secret import Secret

WIRES = "fermix.providers.apis"

_NEWER_FIELD_HOSTS = frozenset({"api.openai.com"})
"""Who refuses `max_tokens` on the chat wire; everyone else knows only that name.

Source: https://platform.openai.com/docs/api-reference/chat/create (`max_tokens` is deprecated).
"""


_UNKNOWN = """\
Nothing is known of the model {model!r} of {name}: it is taken to read {window:,} tokens and to see no \
pictures. To say what it can do:
    fermix config set providers.{name}.window_tokens TOKENS
    fermix config set providers.{name}.sees_images true"""


def remote(spec: VendorSpec) -> Vendor:
    """A maker of providers of this vendor, see `Vendor`."""

    def make(
        name: str, model: str | None, settings: NamedProviderSettings | None, parts: Parts
    ) -> Provider:
        settings = settings or NamedProviderSettings()
        base = base_of(spec, name, settings)
        model = model_of(name, model, settings)
        door = OwnerDoor(base, connect_timeout_s=settings.connect_timeout_s)

        def key() -> Secret | None:
            return parts.secret(settings.api_key) if settings.api_key else None

        def route(learned: Learned) -> Route:
            return route_of(spec, name, model, settings, host=door.address.host, learned=learned)

        def unknown(learned: Learned) -> str | None:
            is_told = spec.base_url is None or spec.window_tokens or settings.window_tokens
            if is_told or learned.added_to(facts_of(spec.name, model)).limits.window_tokens:
                return None
            return _UNKNOWN.format(name=name, model=model, window=SAFE_WINDOW_TOKENS)

        wire = wire_of(spec)
        http = HttpProvider(
            route(Learned()),
            wire,
            door,
            key=key,
            idle_timeout_s=settings.idle_timeout_s,
            timeout_s=settings.timeout_s,
            clock=parts.clock,
            effort=settings.effort or None,
        )
        reader = ListReader(door, lambda: wire.headers(key()), spec, model)
        return LearningProvider(http, route, reader, unknown=unknown, base_url=base, parts=parts)

    return make


def model_of(name: str, model: str | None, settings: NamedProviderSettings) -> str:
    """The model to ask; `model` counts before the settings. Raises: ProviderError when nobody names one."""
    if chosen := model or settings.model:
        return chosen
    raise ProviderError(
        f"The provider {name!r} has no model.", hint=f"fermix config set providers.{name}.model MODEL"
    )


def base_of(spec: VendorSpec, name: str, settings: NamedProviderSettings) -> str:
    """The address to ask. Raises: ProviderError when nobody says."""
    base = settings.base_url or spec.base_url
    if not base:
        raise ProviderError(
            f"The provider {name!r} has no address.",
            hint=f"fermix config set providers.{name}.base_url https://HOST/v1",
        )
    return base.rstrip("/").removesuffix(spec.trim) if spec.trim else base


def wire_of(spec: VendorSpec) -> WireApi:
    """The vendor's wire, loaded now: most owners use one of them."""
    return cast(WireApi, import_module(f"{WIRES}.{spec.api}").API)


def route_of(
    spec: VendorSpec,
    name: str,
    model: str,
    settings: NamedProviderSettings,
    *,
    host: str,
    learned: Learned | None = None,
) -> Route:
    """What is known of the model, as far as the owner does not say otherwise."""
    facts = (learned or Learned()).added_to(facts_of(spec.name, model))
    limits = replace(
        facts.limits,
        takes_tools=settings.takes_tools and facts.limits.takes_tools,
        max_output_tokens=settings.max_output_tokens or facts.limits.max_output_tokens,
        window_tokens=settings.window_tokens or _window(spec, facts.limits.window_tokens),
        sees_images=facts.limits.sees_images if settings.sees_images is None else settings.sees_images,
    )
    if settings.effort and settings.effort not in limits.efforts:
        limits = replace(limits, efforts=(*limits.efforts, settings.effort))
    return Route(
        provider=name,
        model=model,
        quirks=_quirks(spec, model, settings, host),
        limits=limits,
        price=facts.price,
    )


def _window(spec: VendorSpec, known: int | None) -> int:
    """Where the wire lets us choose never more than the usual: a window takes memory, asked for or not."""
    if spec.window_tokens is not None:
        return min(spec.window_tokens, known or spec.window_tokens)
    return known or SAFE_WINDOW_TOKENS


def _quirks(spec: VendorSpec, model: str, settings: NamedProviderSettings, host: str) -> Quirks:
    quirks = spec.quirks_of(model, spec.quirks) if spec.quirks_of else spec.quirks
    usual = "max_completion_tokens" if host in _NEWER_FIELD_HOSTS else quirks.max_tokens_field
    return replace(
        quirks,
        max_tokens_field=settings.max_tokens_field or usual,
        usage_in_stream=quirks.usage_in_stream and settings.usage_in_stream,
    )
