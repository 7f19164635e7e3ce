"""What a vendor's own list said of the model in use, kept in the home until it is read anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fermix.config.atomic import write_atomically
from fermix.paths import Home
from fermix.providers.known_models import ModelFacts
from fermix.providers.limits import Price

_LIMIT_BYTES = 65_536
_EFFORTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One model as its server describes it; None and empty where it does not tell."""

    window_tokens: int | None = None
    max_output_tokens: int | None = None
    sees_images: bool | None = None
    takes_tools: bool | None = None
    efforts: tuple[str, ...] = ()
    price: Price | None = None

    def added_to(self, known: ModelFacts) -> ModelFacts:
        """Both together; what the server says today counts before what its page said one day."""
        limits = known.limits
        limits = replace(
            limits,
            window_tokens=self.window_tokens or limits.window_tokens,
            max_output_tokens=self.max_output_tokens or limits.max_output_tokens,
            sees_images=limits.sees_images if self.sees_images is None else self.sees_images,
            takes_tools=limits.takes_tools if self.takes_tools is None else self.takes_tools,
            efforts=self.efforts or limits.efforts,
        )
        return ModelFacts(limits, self.price or known.price)


@dataclass(frozen=True, slots=True)
class Kept:
    """What the home has of a provider's model."""

    learned: Learned
    read_ms: int
    """When the list was read."""


def recall(home: Home, provider: str, *, model: str, base_url: str | None = None) -> Kept | None:
    """What was kept of this model at this address; None when nothing was, or it cannot be read.

    base_url: None takes what was kept of any address.
    """
    try:
        with _path(home, provider).open("rb") as file:
            kept = json.loads(file.read(_LIMIT_BYTES))
        if kept["model"] != model or base_url not in (None, kept["base_url"]):
            return None
        return Kept(_learned(kept["learned"]), int(kept["read_ms"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep(home: Home, provider: str, kept: Kept, *, base_url: str, model: str) -> None:
    """Write it down for the next start and `fermix models list`; what cannot be written is read anew."""
    told = {
        "base_url": base_url,
        "model": model,
        "read_ms": kept.read_ms,
        "learned": asdict(kept.learned),
    }
    with suppress(OSError):
        home.models.mkdir(parents=True, exist_ok=True)
        write_atomically(_path(home, provider), json.dumps(told).encode(), mode=0o600)


def _path(home: Home, provider: str) -> Path:
    return home.models / f"{provider}.facts.json"


def _learned(told: Mapping[str, Any]) -> Learned:
    """Raises: KeyError, TypeError or ValueError for what is no such thing."""
    price = told["price"]
    return Learned(
        window_tokens=_count(told["window_tokens"]),
        max_output_tokens=_count(told["max_output_tokens"]),
        sees_images=_claim(told["sees_images"]),
        takes_tools=_claim(told["takes_tools"]),
        efforts=tuple(str(each) for each in told["efforts"])[:_EFFORTS],
        price=None if price is None else Price(**price),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _claim(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
