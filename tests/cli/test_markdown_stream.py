"""Markdown that is shown while it comes: nothing is lost, and what is taken back was really there."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermix.cli.markdown_stream import BlockCutter, MarkdownStream, Preview

FRAGMENTS = [
    "word ",
    "# ",
    "- ",
    "1. ",
    "```",
    "~~~",
    "    ",
    "**",
    "`",
    "> ",
    "[x](y)",
    "<b>",
    "<div>",
    "&amp;",
    "\\",
    "---",
    "界",
    "*",
    "_",
    "![i](j)",
    "word: y",
]
FRAGMENTS += ["\n", "\n\n", "```py\n", "~~~\n", "| a | b |\n", "|-|-|\n", "\t", "\x1b[2J", "[word]: y\n"]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(text[start : start + size])
        start += size
    return [*pieces, text[start:]]


@given(texts, st.lists(st.integers(1, 9), max_size=30))
def test_blocks_are_the_text_however_it_is_cut(text: str, sizes: list[int]) -> None:
    cutter = BlockCutter()

    steps = [step for piece in cut(text, sizes) for step in cutter.feed(piece)]
    blocks = [block for block, _ in steps if block is not None] + [cutter.finish()]

    assert "".join(blocks) == text
    assert "".join(rest for _, rest in steps) == text


@settings(max_examples=200, deadline=None)
@given(texts, st.lists(st.integers(1, 9), max_size=30))
def test_any_text_can_be_shown_and_its_words_stay(text: str, sizes: list[int]) -> None:
    out = io.StringIO()
    stream = MarkdownStream(out)

    for piece in cut(text, sizes):
        stream.write(piece)
    stream.flush()

    assert "\x1b[2J" not in out.getvalue()
    kept = re.sub(r"(```|~~~)[^\n]*", "", text)  # the name of a block's language is not shown
    assert Screen().after(out.getvalue()).count("word") >= kept.count("word")


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\n\ntwo", ["one\n\n", "two"]),
        ("```\na\n\nb\n```\nafter", ["```\na\n\nb\n```\n", "after"]),
        ("- a\n\n  more of a\n\nb", ["- a\n\n  more of a\n\n", "b"]),
        ("````\n```\n````\n", ["````\n```\n````\n", ""]),
    ],
)
def test_blocks_end_where_markdown_says(text: str, blocks: list[str]) -> None:
    cutter = BlockCutter()

    found = [block for char in text for block, _ in cutter.feed(char) if block is not None]

    assert [*found, cutter.finish()] == blocks


@given(st.text("ab界\n\t", max_size=300))
def test_preview_takes_back_all_it_wrote_and_nothing_else(text: str) -> None:
    out = io.StringIO()
    out.write("above\n")
    preview = Preview(out)

    preview.write(text)
    is_taken_back = preview.take_back()

    if is_taken_back:
        assert Screen().after(out.getvalue()) == "above\n"
    else:
        assert text.count("\n") + len(text) // 30 >= 20


class Screen:
    """As much of a terminal of 80 columns as the stream uses."""

    def __init__(self) -> None:
        self.lines = [""]
        self.row = 0
        self.column = 0

    def after(self, output: str) -> str:
        """What stands on it when it was sent `output`."""
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.|\n", output, re.DOTALL):
            if part.startswith("\x1b["):
                self.control(part[2:])
            else:
                self.put(part)
        return "\n".join(self.lines)

    def control(self, sequence: str) -> None:
        if sequence.endswith("A"):
            self.row -= int(sequence[:-1])
            assert self.row >= 0, "went up over the top"
        elif sequence == "J":
            self.lines = self.lines[: self.row + 1]
            self.lines[-1] = self.lines[-1][: self.column]

    def put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row += 1
            self.column = 0
            if self.row == len(self.lines):
                self.lines.append("")
        else:
            line = self.lines[self.row]
            self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
            self.column += 1


def test_block_taller_than_the_screen_is_shown_once() -> None:
    out = io.StringIO()
    stream = MarkdownStream(out)
    lines = [f"line{number};" for number in range(100)]

    for piece in cut("Look:\n\n```\n" + "\n".join(lines) + "\n```\n\nThat **was** it.", [7] * 200):
        stream.write(piece)
    stream.flush()
    shown = Screen().after(out.getvalue())

    assert [shown.count(line) for line in lines] == [1] * 100
    assert "That was it." in shown
