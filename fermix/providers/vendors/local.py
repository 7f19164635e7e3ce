"""The model on this machine: an Ollama with a tool-capable model, else the built-in one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from fermix.net.door import OwnerDoor
from fermix.providers.apis.wire import Route
from fermix.providers.catalog import BUILT_IN, local_models
from fermix.providers.client import HttpProvider
from fermix.providers.known_models import UNKNOWN
from fermix.providers.port import (
    FREE,
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    Price,
    Provider,
    StreamEvent,
)
from fermix.providers.settings import NamedProviderSettings
from fermix.providers.vendors.embedded import EmbeddedModel
from fermix.providers.vendors.ollama import SPEC as OLLAMA
from fermix.providers.vendors.ollama_models import find_model
from fermix.providers.vendors.remote import wire_of
from fermix.providers.vendors.vendor import Parts

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 30.0
_OLLAMA_IDLE_S = 300.0
"""Longest silence: a big model is loaded from disk before its first word."""
_OLLAMA_TOTAL_S = 1800.0


class LocalProvider:
    """Looks for the best model on this machine and asks it.

    Reading `limits` may look at the Ollama's address again when the built-in model answered so
    far: at most every 30 s, and within a millisecond when nothing listens there.
    """

    def __init__(self, name: str, model: str | None, parts: Parts) -> None:
        self.name = name
        self._wanted = model
        self._parts = parts
        own_file = local_models(parts.home, parts.environment).get(model or "")
        self._is_own = own_file is not None and model != BUILT_IN
        self._embedded = EmbeddedModel(name, parts, model_path=own_file if self._is_own else None)
        self._looks_elsewhere = bool(parts.local.ollama_url) and own_file is None
        self._ollama: HttpProvider | None = None
        self._looked_s: float | None = None
        """When the Ollama's address was last looked at; None when it should be looked at now."""

    @property
    def model(self) -> str:
        """What answered last, or will."""
        return self._ollama.model if self._ollama else self._embedded.route.model

    @property
    def limits(self) -> ModelLimits:
        self._look()
        return self._ollama.limits if self._ollama else self._embedded.route.limits

    @property
    def price(self) -> Price | None:
        """Nothing: it runs on this machine."""
        return FREE

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """See `Provider.stream`."""
        self._look()
        chosen = self._ollama
        if chosen is None:
            yield from self._embedded.stream(request)
            return
        for event in chosen.stream(request):
            if isinstance(event, Failed) and event.kind is FailureKind.PROVIDER_UNAVAILABLE:
                log.info("The Ollama does not answer any more; looking again next time")
                self._ollama, self._looked_s = None, None
            yield event

    def notice(self) -> str | None:
        self._look()
        return None if self._ollama or self._is_own else SMALL_MODEL_NOTICE

    def stop(self, timeout_s: float) -> None:
        """End the built-in model's process and the connections."""
        if self._ollama is not None:
            self._ollama.stop(timeout_s)
        self._embedded.stop(timeout_s)

    def _look(self) -> None:
        """Choose; the Ollama once found is kept until it stops answering."""
        local, now_s = self._parts.local, self._parts.clock.monotonic_s()
        is_fresh = self._looked_s is not None and now_s - self._looked_s < _LOOK_AGAIN_S
        if self._ollama is not None or is_fresh or not self._looks_elsewhere:
            return
        self._looked_s = now_s
        found = find_model(local.ollama_url, wanted=self._wanted)
        if found is not None:
            name, learned = found
            log.info("Using the model %s of the Ollama on this machine", name)
            limits = learned.added_to(UNKNOWN).limits
            window = min(local.ollama_window_tokens, limits.window_tokens or local.ollama_window_tokens)
            self._ollama = HttpProvider(
                Route(
                    provider=self.name,
                    model=name,
                    price=FREE,
                    limits=replace(limits, window_tokens=window),
                ),
                wire_of(OLLAMA),
                OwnerDoor(local.ollama_url.rstrip("/").removesuffix("/v1"), connect_timeout_s=2.0),
                key=lambda: None,
                idle_timeout_s=_OLLAMA_IDLE_S,
                timeout_s=_OLLAMA_TOTAL_S,
                clock=self._parts.clock,
            )


SMALL_MODEL_NOTICE = """\
This answer comes from the small model built into fermix. It runs on this machine and needs no key, \
but it knows little and cannot use tools. To connect a better one, of any provider:
    fermix setup
Or run Ollama on this machine with a model that can use tools: fermix finds it by itself."""


def make(name: str, model: str | None, settings: NamedProviderSettings | None, parts: Parts) -> Provider:
    """See `Vendor`; a [providers.local] table has nothing to say here."""
    return LocalProvider(name, model, parts)


VENDOR = make
