"""Native thinking on the chat wire: `reasoning_details` that come in pieces and are wanted back whole.

Source: https://openrouter.ai/docs/use-cases/reasoning-tokens (`type`, `index`, `text`, `summary`, `data`,
`signature`; sent back as they came), read 2026-12-01.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

from fermix.providers.apis.wire import BLOCKS_LIMIT, TEXT_LIMIT_CHARS

_IN_PIECES = frozenset({"text", "summary", "data"})


class Details:
    """Joins pieces; gives nothing when they were too many, since a part would be refused."""

    def __init__(self) -> None:
        self._joined: list[tuple[dict[str, Any], dict[str, StringIO]]] = []
        self._size = 0

    def add(self, piece: dict[str, Any]) -> None:
        """Lengthen the last detail, or begin the next when type or index are others."""
        if self._is_too_much():
            return
        last = self._joined[-1][0] if self._joined else None
        if last is None or any(last.get(key) != piece.get(key) for key in ("type", "index")):
            self._joined.append(({}, {}))
        known, texts = self._joined[-1]
        for key, value in piece.items():
            if key in _IN_PIECES and isinstance(value, str):
                # Not one text made longer: a server that sends letters would have it copied for each.
                texts.setdefault(key, StringIO()).write(value)
                self._size += len(value)
                known.setdefault(key, None)
            elif value is not None or key not in known:
                known[key] = value

    def whole(self) -> list[dict[str, Any]]:
        """The details in their order."""
        if self._is_too_much():
            return []
        return [
            {key: texts[key].getvalue() if key in texts else value for key, value in known.items()}
            for known, texts in self._joined
        ]

    def _is_too_much(self) -> bool:
        return len(self._joined) > BLOCKS_LIMIT or self._size > TEXT_LIMIT_CHARS
