"""What the wizard needs from outside: a person to ask, a probe to try, and what is set already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fermix.secret import Secret


class Asker(Protocol):
    """A person at a terminal.

    Contract: every question raises KeyboardInterrupt when the person leaves.
    """

    def choose(self, question: str, options: Sequence[str], *, default: int) -> int:
        """The index of the chosen option."""
        ...

    def line(self, question: str, default: str = "") -> str:
        """What was typed; `default` for nothing."""
        ...

    def hidden(self, question: str) -> str:
        """What was typed unseen; empty for nothing."""
        ...

    def tell(self, text: str) -> None:
        """Say something in between."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A [providers.NAME] table as it stands."""

    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    """The reference, `@secret:NAME`."""
    vendor: str = ""
    """A known vendor; empty where NAME says it, or it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What is set already; Enter keeps it."""

    provider: str | None = None
    """None when config.toml does not say."""
    model: str | None = None
    """`provider.model`, which counts before a table's."""
    tables: Mapping[str, Table] = field(default_factory=dict)
    owner_name: str = ""
    known_as: str = ""
    """What this machine calls its user."""
    ollama_url: str | None = None
    """Where an Ollama answers; None when none does."""
    has_built_in: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Answers that came as flags; None asks, or keeps what is set."""

    provider: str | None = None
    base_url: str | None = None
    model: str | None = None
    key: Secret | None = None
    owner_name: str | None = None
    skips_probe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What a probe came to; see `fermix.providers.probe`."""

    status: str
    message: str
    hint: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    latency_ms: int = 0
    takes_tools: bool = True

    @staticmethod
    def of(answer: Mapping[str, Any]) -> Tried:
        """From what `provider.probe` answered."""
        hint, model = answer.get("hint"), answer.get("model")
        return Tried(
            status=str(answer.get("status") or "failed"),
            message=str(answer.get("message") or ""),
            hint=str(hint) if hint else None,
            model=str(model) if model else None,
            models=tuple(str(name) for name in answer.get("models") or ()),
            latency_ms=int(answer.get("latency_ms") or 0),
            takes_tools=answer.get("takes_tools") is not False,
        )

    @property
    def is_good(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What is to be probed; without an address it is the model on this machine."""

    name: str
    base_url: str | None = None
    vendor: str | None = None
    """A known vendor; None for any other server."""
    model: str | None = None
    key: Secret | None = None
    preferred: tuple[str, ...] = ()


Probe = Callable[[Attempt], Tried]
"""Asks a provider for real."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be written down."""

    provider: str
    """`local`, or the name of a table."""
    base_url: str | None = None
    """None leaves it to the vendor, which has one."""
    model: str | None = None
    """None leaves what is set; a table always has one."""
    key: Secret | None = None
    """A new key; None leaves the present one."""
    takes_tools: bool = True
    owner_name: str = ""
    tried: Tried | None = None
    """None when it was not tried."""
