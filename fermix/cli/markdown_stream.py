"""Markdown that is readable while it comes and rendered as soon as a block of it is whole.

The block that is still coming stands on the screen as plain text. When it ends, those lines are
taken back and the block is printed rendered. A block taller than the screen cannot be taken back:
it stays plain. No text is ever dropped.
"""

from __future__ import annotations

import re
import shutil
from typing import TextIO

from markdown_it import MarkdownIt
from prompt_toolkit.utils import get_cwidth
from rich.console import Console
from rich.markdown import Markdown

from fermix.cli.terminal import escaped

_PADDING = re.compile(r" +$", re.MULTILINE)
"""Rich fills every line to the screen's width, which would be copied along."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownStream:
    """Takes text as it comes; owns the bottom lines of the terminal until `flush`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._console = Console(file=out, highlight=False)
        self._cutter = BlockCutter()
        self._preview = Preview(out)
        self._has_printed = False

    @property
    def is_line_open(self) -> bool:
        """Whether unfinished text stands on the last line."""
        return self._preview.column > 0

    def write(self, text: str) -> None:
        """The next piece of text."""
        for block, rest in self._cutter.feed(escaped(text)):
            if block is None:
                self._preview.write(rest)
            else:
                self._print_block(block)
        self._out.flush()

    def flush(self) -> None:
        """End the current block, whole or not."""
        block = self._cutter.finish()
        if block.strip():
            self._print_block(block)
        else:
            self._preview.take_back()
        self._out.flush()

    def _print_block(self, block: str) -> None:
        if not self._preview.take_back():
            if self._preview.column:
                self._out.write("\n")
            self._preview.reset()
            self._has_printed = True
            return
        if not block.strip():
            return
        if self._has_printed:
            self._out.write("\n")
        self._has_printed = True
        with self._console.capture() as rendered:
            self._console.print(_markdown(block))
        self._out.write(_PADDING.sub("", rendered.get()))


def _markdown(block: str) -> Markdown:
    """The block to be rendered, with what Rich would leave out (HTML, link targets) as plain text."""
    rendered = Markdown("", hyperlinks=False)
    rendered.markup = block
    rendered.parsed = _PARSER.parse(block)
    return rendered


_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")


class BlockCutter:
    """Finds where a Markdown block ends: at a blank line outside a code fence, unless what follows
    is indented and so belongs to it; and at the end of a fence."""

    def __init__(self) -> None:
        self._block = ""
        self._line = ""
        self._fence: str | None = None
        self._is_after_blank = False

    def feed(self, text: str) -> list[tuple[str | None, str]]:
        """In order: (None, text to add to the current block) or (a whole block, "")."""
        steps: list[tuple[str | None, str]] = []
        for piece in text.splitlines(keepends=True):
            if not self._line and self._is_after_blank and not piece.isspace():
                self._is_after_blank = False
                if not piece[0].isspace():
                    steps.append((self._take(), ""))
            self._line += piece
            self._block += piece
            steps.append((None, piece))
            if piece.endswith("\n"):
                if self._end_line():
                    steps.append((self._take(), ""))
                self._line = ""
        return steps

    def finish(self) -> str:
        """What is left; the cutter then begins anew."""
        self._line = ""
        self._fence = None
        self._is_after_blank = False
        return self._take()

    def _take(self) -> str:
        block, self._block = self._block, ""
        return block

    def _end_line(self) -> bool:
        """Whether the line just ended also ends the block."""
        mark = _FENCE.match(self._line)
        if self._fence is not None:
            if mark and mark[1].startswith(self._fence) and not self._line.strip().strip(self._fence[0]):
                self._fence = None
                return True
            return False
        if mark:
            self._fence = mark[1]
        self._is_after_blank = not self._line.strip() and bool(self._block.strip())
        return False


class Preview:
    """Plain text at the bottom of the screen that can be taken back while it all is on the screen."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.reset()

    def reset(self) -> None:
        """Begin at the start of a line; what stands above is no longer ours."""
        self._size = shutil.get_terminal_size()
        self._rows = 0
        self.column = 0

    def write(self, text: str) -> None:
        """Add text; lines are broken here, so that the terminal never breaks one itself."""
        pieces: list[str] = []
        for char in text.expandtabs(4):
            if char == "\n":
                self._rows += 1
                self.column = 0
                pieces.append(char)
                continue
            width = max(0, get_cwidth(char))
            if self.column + width >= self._size.columns:
                self._rows += 1
                self.column = 0
                pieces.append("\n")
            self.column += width
            pieces.append(char)
        self._out.write("".join(pieces))

    def take_back(self) -> bool:
        """Remove the text from the screen; False when a part of it has already left the screen."""
        size = shutil.get_terminal_size()
        if self._rows >= size.lines - 1 or size != self._size:
            return False
        self._out.write("\r" + (f"\x1b[{self._rows}A" if self._rows else "") + "\x1b[J")
        self.reset()
        return True
