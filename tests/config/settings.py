"""A small schema for the tests of the settings mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fermix.config import section, setting
from fermix.config.schema import Schema


@section("gateway")
@dataclass(frozen=True)
class GatewaySettings:
    """[gateway] section."""

    running_turns: int = setting(64, "Turns that run at once.", unit="turns", minimum=1, maximum=1000)
    pause_s: float = setting(0.5, "Pause between two.", unit="s", minimum=0)
    is_open: bool = setting(True, "Whether it is open.")
    level: str = setting("info", "How much it says.", choices=("debug", "info"))
    folder: Path | None = setting(None, "Where it works.")
    names: tuple[str, ...] = setting((), "Names it goes by.")


@section("channels.telegram")
@dataclass(frozen=True)
class TelegramSettings:
    """[channels.telegram] section."""

    owner: str | None = setting(None, "The owner's id.", is_id=True)
    allowed: tuple[str, ...] = setting((), "Ids let in.", is_id=True)
    token: str | None = setting(None, "The bot's token.", is_secret=True)
    low: int = setting(1, "Lower end.")
    high: int = setting(2, "Upper end.")

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) must not be above high ({self.high})")


@section("providers", is_named=True)
@dataclass(frozen=True)
class NamedProviderSettings:
    """[providers.NAME] tables."""

    base_url: str | None = setting(None, "Where it is.")
    model: str = setting("small", "What to ask.")


SCHEMA = Schema((GatewaySettings, TelegramSettings, NamedProviderSettings))
