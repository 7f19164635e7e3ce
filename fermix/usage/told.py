"""The answer to `/usage`: today, the last days, and the models that took most."""

from __future__ import annotations

from fermix.clock import Clock
from fermix.messages import ConversationKey
from fermix.usage.days import day_of
from fermix.usage.report import By, UsageStore
from fermix.usage.words import sentence

DAYS = 30
MODELS = 5
_DAY_MS = 86_400_000


class UsageTeller:
    """Puts the sums of the rows into Markdown."""

    def __init__(self, store: UsageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def tell(self, key: ConversationKey | None) -> str:
        """What one conversation took, or with None everything."""
        now_ms = self._clock.now_ms()
        recent_ms = now_ms - DAYS * _DAY_MS
        sums = {
            "today": self._store.total(since_ms=day_of(now_ms)[0], of=key),
            f"last {DAYS} days": self._store.total(since_ms=recent_ms, of=key),
            "in all": self._store.total(of=key),
        }
        lines = ["This conversation:" if key else "Everything:", ""]
        lines += [f"- {name}: {sentence(spent)}" for name, spent in sums.items()]
        models = self._store.lines(By.MODEL, since_ms=recent_ms, limit=MODELS + 1, of=key)
        if len(models) > 1:
            lines += ["", f"By model in the last {DAYS} days:", ""]
            lines += [f"- {each.name}: {sentence(each.spent)}" for each in models[:MODELS]]
            if len(models) > MODELS:
                lines.append("- … and more: `fermix usage --by model`")
        return "\n".join(lines)
