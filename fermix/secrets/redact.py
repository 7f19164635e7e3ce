"""Takes known secrets out of text on its way out of the process."""

from __future__ import annotations

import re
from urllib.parse import quote, quote_plus

from fermix.secret import Secret

SHORTEST = 6
"""Shorter values would also be cut out of ordinary words; they are left alone."""


class Redactor:
    """Replaces every known secret by `***`, also where it is percent-encoded for a URL.

    Safe from any thread: adding swaps one pattern for the next.
    """

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def add(self, secret: Secret) -> None:
        """Know this secret from now on."""
        text = secret.reveal().strip()
        if len(text) < SHORTEST or text in self._known:
            return
        known = self._known | _spellings(text)
        # Longest first: a secret that contains another is replaced whole.
        longest_first = sorted(known, key=lambda each: (-len(each), each))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        self._known = known

    def redact(self, text: str) -> str:
        """The text with every known secret replaced."""
        return self._pattern.sub("***", text) if self._pattern is not None else text


def _spellings(text: str) -> frozenset[str]:
    encoded = {quote(text, safe=""), quote(text), quote_plus(text)}
    lower = {re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), each) for each in encoded}
    return frozenset({text} | encoded | lower)
