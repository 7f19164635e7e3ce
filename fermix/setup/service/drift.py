"""What an installed unit says otherwise than the one this fermix would write."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of the unit."""

    line: int
    """Its number in the installed file, from 1; of a missing line, where it should stand."""
    installed: str | None
    """None when the line is missing."""
    expected: str | None
    """None when the line should not be there."""


def differences(installed: str, expected: str) -> list[Difference]:
    """Every line that differs, in order; empty when the unit is as it should be."""
    old, new = installed.splitlines(), expected.splitlines()
    found = []
    for _, start, end, new_start, new_end in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if old[start:end] == new[new_start:new_end]:
            continue
        for offset in range(max(end - start, new_end - new_start)):
            found.append(
                Difference(
                    line=min(start + offset, end) + 1,
                    installed=old[start + offset] if start + offset < end else None,
                    expected=new[new_start + offset] if new_start + offset < new_end else None,
                )
            )
    return found
