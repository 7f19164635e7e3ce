"""A provider as one message asked for it: with its own level of thinking, or not to be had at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fermix.providers.port import (
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    Price,
    Provider,
    StreamEvent,
)


class WithEffort:
    """See `Provider`; every question is asked with this level of thinking."""

    def __init__(self, provider: Provider, effort: str) -> None:
        self._provider = provider
        self._effort = effort

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def model(self) -> str:
        return self._provider.model

    @property
    def limits(self) -> ModelLimits:
        return self._provider.limits

    @property
    def price(self) -> Price | None:
        return self._provider.price

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        return self._provider.stream(self._asked(request))

    def notice(self) -> str | None:
        return self._provider.notice()

    def stop(self, timeout_s: float) -> None:
        self._provider.stop(timeout_s)

    def _asked(self, request: ModelRequest) -> ModelRequest:
        fitted = request.fitted
        return replace(
            request,
            effort=self._effort,
            fitted=(lambda limits: self._asked(fitted(limits))) if fitted is not None else None,
        )


class Missing:
    """See `Provider`; a message was pinned to it and it is there no more."""

    price = None
    limits = ModelLimits()

    def __init__(self, name: str, model: str, why: str) -> None:
        self.name = name
        self.model = model
        self._why = why

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        yield Failed(FailureKind.MODEL_UNKNOWN, self._why, retryable=False)

    def notice(self) -> str | None:
        return None

    def stop(self, timeout_s: float) -> None:
        return
