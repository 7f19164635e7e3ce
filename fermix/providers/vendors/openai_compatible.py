"""Any server with the OpenAI chat-completions wire, at the address the owner wrote."""

from __future__ import annotations

from fermix.errors import ProviderError
from fermix.net.door import OwnerDoor
from fermix.providers.apis.openai_chat import API
from fermix.providers.apis.wire import Quirks, Route
from fermix.providers.client import HttpProvider
from fermix.providers.port import ModelLimits, Provider
from fermix.providers.settings import NamedProviderSettings
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret

_NEWER_FIELD_HOSTS = frozenset({"api.openai.com"})
"""Who refuses `max_tokens` for its newer models; everyone else knows only that name.

Source: https://platform.openai.com/docs/api-reference/chat/create (`max_tokens` is deprecated).
"""


def make(name: str, model: str | None, settings: NamedProviderSettings | None, parts: Parts) -> Provider:
    """See `Vendor`."""
    settings = settings or NamedProviderSettings()
    model = model or settings.model
    if not settings.base_url:
        raise ProviderError(
            f"The provider {name!r} has no address.",
            hint=f"fermix config set providers.{name}.base_url https://HOST/v1",
        )
    if not model:
        raise ProviderError(
            f"The provider {name!r} has no model.", hint=f"fermix config set providers.{name}.model MODEL"
        )
    door = OwnerDoor(settings.base_url, connect_timeout_s=settings.connect_timeout_s)
    usual_field = "max_completion_tokens" if door.address.host in _NEWER_FIELD_HOSTS else "max_tokens"
    route = Route(
        provider=name,
        model=model,
        quirks=Quirks(
            max_tokens_field=settings.max_tokens_field or usual_field,
            usage_in_stream=settings.usage_in_stream,
        ),
        limits=ModelLimits(takes_tools=settings.takes_tools, max_output_tokens=settings.max_output_tokens),
    )

    def key() -> Secret | None:
        return parts.secret(settings.api_key) if settings.api_key else None

    return HttpProvider(
        route,
        API,
        door,
        key=key,
        idle_timeout_s=settings.idle_timeout_s,
        timeout_s=settings.timeout_s,
        clock=parts.clock,
    )


VENDOR = make
