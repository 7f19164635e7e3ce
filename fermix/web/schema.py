r"""Kinds of values that many routes take, as the description tells them.

The patterns mean the same in every dialect of regular expressions: no `\p{…}`, which few know.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

FORMATTING = (
    r"\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb"
)
"""Characters that cannot be seen and change how others look; those beyond the first plane are left out."""
CONTROLS = r"\x00-\x1f\x7f-\x9f"
SPACES = r" \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
UNTITLED = rf"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{FORMATTING}"
"""What no title may hold; other white space becomes one blank."""

WORDS_PATTERN = r"[^\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
r"""Some sign that is no white space; `\S` means other ones in each dialect."""

_END = rf"[^{CONTROLS}{SPACES}{FORMATTING}]"
_MIDDLE = rf"(?: |{_END})"
NAME_PATTERN = rf"^{_END}(?:{_MIDDLE}{{0,62}}{_END})?$"
TITLE_PATTERN = rf"^[^{UNTITLED}]*$"
HEADER_PATTERN = r"^[!-~](?:[ -~]{0,%d}[!-~])?$"
"""Plain ASCII of at most so many characters and two."""

ULID: dict[str, Any] = {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
SESSION_NAME: dict[str, Any] = {"type": "string", "pattern": NAME_PATTERN}

SessionName = Annotated[str, msgspec.Meta(extra_json_schema=SESSION_NAME)]
Id = Annotated[str, msgspec.Meta(extra_json_schema=ULID)]
ModelName = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 200, "pattern": r"^[!-~]+$"})]
Effort = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 40, "pattern": r"^[!-~]+$"})]
Title = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 200, "pattern": TITLE_PATTERN})]
