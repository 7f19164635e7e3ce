"""Takes known secrets out of text on its way out of the process."""

from __future__ import annotations

import re
from bisect import bisect_left
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
        self._in_order: list[str] = []
        self._first: re.Pattern[str] | None = None
        """Where one may begin."""

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
        self._in_order = sorted(known)
        self._first = re.compile("|".join(sorted({re.escape(each[0]) for each in known})))

    def redact(self, text: str) -> str:
        """The text with every known secret replaced."""
        return self._pattern.sub("***", text) if self._pattern is not None else text

    def cut(self, text: str) -> int:
        """How much of a text that goes on is sure: what comes behind may begin a secret."""
        if self._pattern is None:
            return len(text)
        place = self._beginning(text, 0)
        for found in self._pattern.finditer(text):
            if found.start() >= place:
                break
            if found.end() > place:  # a whole one, whose last characters look like the first of another
                place = self._beginning(text, found.end())
        return place

    def _beginning(self, text: str, start: int) -> int:
        """The first place from which the text to its end is the beginning of a known secret."""
        assert self._first is not None
        in_order = self._in_order
        for found in self._first.finditer(text, start):
            tail = text[found.start() :]
            at = bisect_left(in_order, tail)
            # The tail itself may be one, and also how a longer one begins.
            at += at < len(in_order) and in_order[at] == tail
            if at < len(in_order) and in_order[at].startswith(tail):
                return found.start()
        return len(text)


class StreamRedactor:
    """Redacts a text that comes in pieces, also where a secret is split over them."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now; the rest is held until it is known not to begin a secret."""
        text = self._held + piece
        place = self._redactor.cut(text)
        self._held = text[place:]
        return self._redactor.redact(text[:place])

    def finish(self) -> str:
        """What is still held: the text has ended, or something else comes in between."""
        text, self._held = self._held, ""
        return self._redactor.redact(text)

    def drop(self) -> None:
        """Forget what is held: the text begins anew."""
        self._held = ""


def _spellings(text: str) -> frozenset[str]:
    encoded = {quote(text, safe=""), quote(text), quote_plus(text)}
    lower = {re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), each) for each in encoded}
    return frozenset({text} | encoded | lower)
