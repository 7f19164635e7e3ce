"""The description says of names and titles what the daemon really takes."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from fermix.daemon.desk import key_of
from fermix.errors import UsageError
from fermix.web.schema import NAME_PATTERN, WORDS_PATTERN


def is_taken(name: str) -> bool:
    try:
        return key_of(name).chat_id == name
    except UsageError:
        return False


def test_every_character_is_taken_in_a_name_just_as_the_pattern_says() -> None:
    differing = [
        char
        for char in map(chr, range(0x10000))
        if not 0xD800 <= ord(char) < 0xE000
        and is_taken(char) != bool(re.fullmatch(NAME_PATTERN, char))
        and unicodedata.category(char) != "Cn"  # no character in this edition of Unicode
    ]

    assert differing == []


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("main", True),
        ("a b", True),
        ("ключ 🔑", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("", False),
        (" a", False),
        ("a ", False),
        ("a\nb", False),
        ("a\u202eb", False),
        ("a\u3000b", False),
    ],
)
def test_pattern_and_daemon_agree_on_whole_names(name: str, is_name: bool) -> None:
    assert is_taken(name) is is_name
    assert bool(re.fullmatch(NAME_PATTERN, name)) is is_name


def test_words_are_what_the_daemon_does_not_take_for_nothing() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1)]

    promised = {char for char in characters if re.search(WORDS_PATTERN, char)}

    assert [char for char in promised if not char.strip()] == []
    assert len(characters) - len(promised) < 40  # hardly anything else is left out
