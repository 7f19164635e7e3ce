"""Which model is to answer one message, where its sender wants another than the settings name."""

from __future__ import annotations

import msgspec


class Pin(msgspec.Struct, frozen=True):
    """What is left empty is as the settings say."""

    provider: str = ""
    model: str = ""
    effort: str = ""

    def __bool__(self) -> bool:
        return bool(self.provider or self.model or self.effort)


def pin_of(model: str | None, effort: str | None) -> Pin | None:
    """From a person's `PROVIDER/MODEL` or `PROVIDER` and a level; None when neither says anything.

    A model's own name may hold further slashes.
    """
    provider, _, name = (model or "").strip().partition("/")
    return Pin(provider.strip(), name.strip(), (effort or "").strip()) or None
