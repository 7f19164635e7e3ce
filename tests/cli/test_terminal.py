"""What may be sent to a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.cli.terminal import escaped, one_line


@given(st.text(st.characters(codec=None)))
def test_no_control_or_bidi_character_reaches_the_terminal(text: str) -> None:
    shown = escaped(text)

    assert not any(unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t" for char in shown)
    assert not any(unicodedata.bidirectional(char) in BIDI_STEERING for char in shown)


BIDI_STEERING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain – ünïcode ✓ עברית\n\ttab", "plain – ünïcode ✓ עברית\n\ttab"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),
        ("safe\u202etxt", "safe\\u202etxt"),
        ("two\r\nlines", "two\nlines"),
        ("over\rwritten", "over\\x0dwritten"),
        ("bell\x07 back\x08 delete\x7f", "bell\\x07 back\\x08 delete\\x7f"),
    ],
)
def test_what_could_steer_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_one_line_is_cut_with_a_sign() -> None:
    assert one_line("a\nb   c\x1b", 80) == "a b c\\x1b"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
