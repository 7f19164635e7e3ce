"""Kinds of values that many routes take, as the description tells them.

What is taken is checked where it is used. The patterns are ECMA-262's with the `u` flag, as JSON Schema
has them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

ULID: dict[str, Any] = {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
SHOWN = r"\p{L}\p{M}\p{N}\p{P}\p{S}"
"""Characters that can be seen: all but controls, separators and those without a meaning."""
SESSION_NAME: dict[str, Any] = {
    "type": "string",
    "pattern": rf"^[{SHOWN}]([{SHOWN} ]{{0,62}}[{SHOWN}])?$",
}
HEADER_TEXT = r"^[!-~]([ -~]{0,%d}[!-~])?$"
"""Plain ASCII of at most so many characters and two."""

SessionName = Annotated[str, msgspec.Meta(extra_json_schema=SESSION_NAME)]
Id = Annotated[str, msgspec.Meta(extra_json_schema=ULID)]
Title = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 200, "pattern": rf"^[{SHOWN}\s]*$"})]
