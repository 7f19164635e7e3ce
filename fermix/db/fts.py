"""Turning what a person or model typed into an FTS5 expression that cannot be a syntax error."""

from __future__ import annotations

import re

_LIMIT = 64
"""Words of one search; SQLite refuses expressions deeper than 256."""

_PART = re.compile(r'"([^"]*)"|([^\s"]+)')


def match_expression(text: str) -> str:
    """An expression for `MATCH` that finds rows with all the words of `text`; empty when it has none.

    Everything is text: `wrong-book`, `a*`, `title:` and `NOT` are words like any other. Only
    "double quotes" keep their meaning (the words in this order) and a lone OR between words
    (either side). Words beyond the sixty-fourth are left out.
    Source: https://www.sqlite.org/fts5.html#full_text_query_syntax (strings, doubled quotes, AND, OR).
    """
    sides: list[list[str]] = [[]]
    parts = [(match[1], match[2]) for match in _PART.finditer(text)]
    words = 0
    for phrase, word in parts:
        if word == "OR" and sides[-1]:
            sides.append([])
            continue
        content = (phrase or word or "").replace("\0", "")
        # SQLite's tokenizer keeps letters and digits only; a string without any matches nothing.
        if words < _LIMIT and any(char.isalnum() for char in content):
            sides[-1].append(f'"{content}"')
            words += 1
    if not sides[-1]:
        # The OR stood at the end.
        sides.pop()
    return " OR ".join("(" + " AND ".join(side) + ")" for side in sides)
