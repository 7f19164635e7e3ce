"""Tools as wires name them, and as those of OpenAI's making describe them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from fermix.providers.port import ToolSchema

_GOOD_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolNames:
    """Names of at most 64 letters, digits, `_` and `-`, each used only once."""

    offered: Mapping[str, str]
    """Our name → the wire's."""
    ours: dict[str, str]
    """The wire's name → ours."""

    def on_wire(self, name: str) -> str:
        """The wire's name, also of a tool that history knows and that is no longer offered."""
        return self.offered.get(name) or next(iter(_mapped((name,)).values()))


def names_of(tools: Sequence[ToolSchema]) -> ToolNames:
    """The names of the tools that are offered."""
    return _names(tuple(tool.name for tool in tools))


def function_tools(tools: Sequence[ToolSchema], names: ToolNames) -> list[dict[str, Any]]:
    """The schemas as chat completions have them, which Ollama took over.

    Source: https://platform.openai.com/docs/api-reference/chat/create (`tools`).
    """
    return [
        {
            "type": "function",
            "function": {
                "name": names.on_wire(tool.name),
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]


@lru_cache(maxsize=16)  # a conversation's tools stay the same from question to question
def _names(names: tuple[str, ...]) -> ToolNames:
    offered = _mapped(names)
    return ToolNames(MappingProxyType(offered), {wire: name for name, wire in offered.items()})


def _mapped(names: tuple[str, ...]) -> dict[str, str]:
    mapped = {name: name for name in names if _GOOD_NAME.fullmatch(name)}
    taken = set(mapped)
    for name in names:
        if name not in mapped:
            mark = hashlib.sha256(name.encode()).hexdigest()[:6]
            stem = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
            is_free = 0 < len(stem) <= 64 and stem not in taken
            mapped[name] = stem if is_free else f"{stem[:57]}_{mark}"
            taken.add(mapped[name])
    return mapped
