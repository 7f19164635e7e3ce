"""Where each key of a TOML text stands, and how long keys get: tomllib and tomlkit cannot tell."""

from __future__ import annotations

import re

# A string that never ends is taken whole, so that broken text costs no more than good text.
_TOKEN = re.compile(
    r"""
      (?P<comment> \#[^\n]* )
    | (?P<string>  "{3}(?:[^\\]|\\.?)*?(?:"{3,5}|\Z) | '{3}.*?(?:'{3,5}|\Z)
                 | "(?:[^"\\\n]|\\[^\n]?)*"? | '[^'\n]*'? )
    | (?P<line>    \n )
    | (?P<bare>    [A-Za-z0-9_-]+ )
    | (?P<space>   [ \t]+ )
    | (?P<mark>    [\[\]{}=.] )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line, from 1, of every table header and key; `text` is known to be valid TOML.

    Keys inside an inline table are not listed: they stand where the table's own key does,
    or in the lines after it.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    parts: list[str] = []
    state = "key"
    depth = 0
    line = 1
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token[0]
        if kind == "line" and depth == 0:
            state, parts = "key", []
        elif kind in ("bare", "string") and state in ("key", "header"):
            parts.append(word if kind == "bare" else word[1:-1])
        elif kind == "mark" and state == "key":
            if word == "[":
                state = "header"
            elif word == "=":
                state = "value"
                _note(lines, (*table, *parts), line)
        elif word == "]" and state == "header":
            state, table = "after header", tuple(parts)
            _note(lines, table, line)
        elif kind == "mark" and state == "value":
            depth += (word in "[{") - (word in "]}")
        line += word.count("\n")
    return lines


def longest_key(text: str) -> int:
    """How many dotted parts the longest key has; the text need not be valid."""
    longest = dots = 0
    for token in _TOKEN.finditer(text):
        if token[0] == ".":
            dots += 1
            longest = max(longest, dots)
        elif token.lastgroup not in ("bare", "string", "space"):
            dots = 0
    return longest + 1


def _note(lines: dict[tuple[str, ...], int], key: tuple[str, ...], line: int) -> None:
    for length in range(1, len(key) + 1):
        lines.setdefault(key[:length], line)
