"""Takes everything secret or personal out of a text that leaves the machine."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST = 6
"""Shorter values also stand in ordinary words; they are left alone."""
PIECE = 8
"""Any piece of a known secret this long is taken out, wherever it was cut."""

PHRASE = 16
"""Any piece of what was said this long is taken out; shorter ones are anybody's words."""

_LINE_START = re.compile(r"^\S+Z [A-Z]+ +\S+ \[\d+\] \[[^\]\s]*\] ", re.MULTILINE)
"""Source: telemetry.lines.LineFormatter; between two halves of what was logged in two lines."""
_BLANK = re.compile(r"\s+")

SENSITIVE_WORD = (
    r"(?:api[_-]?key|private[_-]?key|access[_-]?key|(?<![a-z])key|token|secret|passwor[dt]|passwd"
    r"|passphrase|(?<![a-z])pass|(?<![a-z])pwd|authorization|cookie|credentials?)"
)
_LABELLED = re.compile(
    rf"""(?ix)
    (?P<label> (?<![\w.-]) (?!(?<=@)secret:) [\w.-]* (?: {SENSITIVE_WORD} | fermix_secret_\w+ ) \b
      ["']? \s* [=:] \s* )
    (?P<value> "(?!@secret:)(?:[^"\\\n]|\\.)*"? | '(?!@secret:)[^'\n]*'?
      | (?: (?:bearer|basic|bot|token)\s+ )? (?!["']?@secret:) [^\s"',;&\])}}]+ )"""
)
"""A name that is called like a secret, and what stands behind it, also where its quote was cut off."""
_PATTERNS = (
    re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    re.compile(r"(?i)(?<=://)[^\s/@:'\"]*:[^\s/@'\"]+(?=@)"),
    re.compile(r"(?i)\b(?:bearer|basic)\s+(?!\*)[A-Za-z0-9._~+/=-]{6,}"),
    re.compile(r"\b(?:sk|pk|rk|xai|gsk|hf|glpat|npm|pypi|key)[-_][A-Za-z0-9_-]{8,}"),
    re.compile(r"\b(?:gh[opsur]|github_pat|xox[abeoprs]|xapp)[-_][A-Za-z0-9_-]{8,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b|\bAIza[A-Za-z0-9_-]{20,}"),
    re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"),
    re.compile(r"\b\d{6,}:[A-Za-z0-9_-]{30,}"),
    re.compile(r"(?<![A-Za-z0-9])[0-9a-fA-F]{32,}(?![A-Za-z0-9])"),
    re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={1,2}"),
    # A long run of all three kinds of signs; an id of ours has no small letters, a path no such runs.
    re.compile(r"(?<![A-Za-z0-9+_-])(?=[A-Za-z0-9+_-]*[a-z])(?=[A-Za-z0-9+_-]*[A-Z])(?=[A-Za-z0-9+_-]*\d)"
               r"[A-Za-z0-9+_-]{24,}"),
)  # fmt: skip
_OTHER_HOMES = re.compile(r"(?<![\w~.-])/(?:home|Users)/[^/\s'\":,;]+|(?<![\w/.-])/root(?![\w.-])")


class Mask:
    """Knows this machine's secrets and where its person lives."""

    def __init__(
        self, secrets: Iterable[str], *, user_homes: Iterable[str] = (), said: Iterable[str] = ()
    ) -> None:
        """`said`: what stands in conversations, in case an error repeats it."""
        spellings = {each for secret in secrets for each in _spellings(secret.strip())}
        self._pieces = _pieces(spellings, PIECE)
        self._phrases = {each for each in _pieces(set(said), PHRASE) if len(each) == PHRASE}
        short = {each for each in self._pieces if len(each) < PIECE}
        self._short = re.compile("|".join(sorted(map(re.escape, short)))) if short else None
        # Longest first, so that a folder in another is replaced whole.
        self._homes = sorted({each for each in user_homes if len(each) > 1}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without known secrets, what looks like one, and the way to a person's home."""
        text = self.known(text)
        text = _LABELLED.sub(rf"\g<label>{MASK}", text)
        for pattern in _PATTERNS:
            text = pattern.sub(MASK, text)
        for home in self._homes:
            text = re.sub(re.escape(home) + r"(?![\w.-])", "~", text)
        return _OTHER_HOMES.sub("~", text)

    def value(self, value: object) -> object:
        """The same for every text in what JSON can hold; a secret's field is masked whatever it holds."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self._field(str(key), each) for key, each in value.items()}
        return [self.value(each) for each in value] if isinstance(value, (list, tuple)) else value

    def known(self, text: str) -> str:
        """The text without any piece of a known secret, also where line ends or log lines cut it."""
        if self._short is not None:
            text = self._short.sub(MASK, text)
        marked = bytearray(len(text))
        self._mark(text, range(len(text)), marked)
        if self._phrases:
            for at in range(len(text) - PHRASE + 1):
                if text[at : at + PHRASE] in self._phrases:
                    marked[at : at + PHRASE] = b"\1" * PHRASE
        kept = [at for start, end in _between_breaks(text) for at in range(start, end)]
        self._mark("".join(text[at] for at in kept), kept, marked)
        return _without(text, marked)

    def _mark(self, text: str, places: range | list[int], marked: bytearray) -> None:
        pieces = self._pieces
        for at in range(len(text) - PIECE + 1):
            if text[at : at + PIECE] in pieces:
                for each in places[at : at + PIECE]:
                    marked[each] = 1

    def _field(self, name: str, value: object) -> object:
        is_secret = re.search(rf"(?i){SENSITIVE_WORD}$", name) is not None
        return MASK if is_secret and isinstance(value, str) and value else self.value(value)


def suspects(text: str) -> set[str]:
    """What stands in a text where secrets stand, or looks like one: to be taken out of other texts too."""
    found = {match["value"].strip("\"'") for match in _LABELLED.finditer(text)}
    for pattern in _PATTERNS:
        found |= {match[0] for match in pattern.finditer(text)}
    # Of a name and its password each counts alone too.
    return (found | {part for each in found for part in each.split(":", 1)}) - {MASK}


def _between_breaks(text: str) -> list[tuple[int, int]]:
    """What is left of the text without blanks and the beginnings of log lines, as ranges."""
    breaks = sorted(match.span() for pattern in (_LINE_START, _BLANK) for match in pattern.finditer(text))
    kept, at = [], 0
    for start, end in breaks:
        if start > at:
            kept.append((at, start))
        at = max(at, end)
    return [*kept, (at, len(text))]


def _pieces(texts: set[str], length: int) -> set[str]:
    """Every piece of this length; of a shorter text, the whole."""
    return {each[at : at + length] for each in texts for at in range(max(0, len(each) - length) + 1)}


def _without(text: str, marked: bytearray) -> str:
    """Each marked run as one mask."""
    shown, at = [], 0
    for match in re.finditer(rb"\x01+", bytes(marked)):
        shown += [text[at : match.start()], MASK]
        at = match.end()
    return "".join([*shown, text[at:]])


def _spellings(secret: str) -> set[str]:
    """How a secret may stand in a text: as it is, encoded, escaped, without its blanks."""
    if len(secret) < SHORTEST:
        return set()
    raw = secret.encode("utf-8", "surrogateescape")
    plain = {
        secret,
        _BLANK.sub("", secret),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        secret.encode("unicode_escape").decode("ascii"),
    }
    percent = {quote(raw, safe=""), quote(raw), quote_plus(raw), "".join(f"%{byte:02X}" for byte in raw)}
    lower = {re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), each) for each in percent}
    coded = {raw.hex(), raw.hex().upper(), *_base64(raw)}
    return {each for each in plain | percent | lower | coded if len(each) >= SHORTEST}


def _base64(raw: bytes) -> set[str]:
    """What of its base64 stays the same wherever it stands in a longer value."""
    found = set()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw)
        # The first signs mix with what stands before, the last with what stands behind.
        stable = encoded[(0, 2, 3)[before] : (before + len(raw)) * 8 // 6].decode("ascii")
        found |= {stable, stable.replace("+", "-").replace("/", "_")}
    return found
