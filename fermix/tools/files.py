"""Reads and writes text files."""

from __future__ import annotations

from fermix.capabilities.context import ToolContext
from fermix.capabilities.effects import FilePart
from fermix.capabilities.tool import tool
from fermix.errors import ToolFailed, ToolRetry
from fermix.trust import Policy

READ_LIMIT_BYTES = 4 * 1024 * 1024
"""How far into a file lines are counted."""
WRITE_LIMIT_BYTES = 1024 * 1024
SAMPLE_BYTES = 8192
"""Where a zero byte says that a file is no text."""


@tool(policy=Policy.READ_ONLY)
def file_read(ctx: ToolContext, path: str, first_line: int = 1, lines: int = 400) -> str:
    """Read a text file by lines; each line comes with its number.

    path: File to read, absolute or relative to the working folder.
    first_line: The first line wanted, from 1.
    lines: How many lines at the most, 1 to 2000.
    """
    if first_line < 1 or not 1 <= lines <= 2000:
        raise ToolRetry(f"first_line is {first_line} and lines {lines}; expected from 1, and 1 to 2000.")
    part = ctx.effects.read_file(path, ctx.turn, limit_bytes=READ_LIMIT_BYTES)
    if not part.size_bytes:
        return f"{path!r} is empty."
    if b"\0" in part.content[:SAMPLE_BYTES]:
        raise ToolFailed(f"{path!r} is a binary file of {part.size_bytes} bytes, not text.")
    text = _lines_of(part.content)
    shown = text[first_line - 1 : first_line - 1 + lines]
    notes = _notes_on(part)
    if left := max(0, len(text) - (first_line - 1 + len(shown))) if shown else 0:
        notes.insert(0, f"[{left} more lines; go on with first_line={first_line + len(shown)}]")
    if not shown:
        notes.insert(0, f"{path!r} has {len(text)} lines; line {first_line} is past its end.")
    return "\n".join([*(f"{number}\t{line}" for number, line in enumerate(shown, first_line)), *notes])


@tool(policy=Policy.READ_WRITE)
def file_write(ctx: ToolContext, path: str, content: str) -> str:
    """Create a text file or replace it whole; folders on the way are made.

    path: File to write, absolute or relative to the working folder.
    content: The whole new text, at most 1 MiB of UTF-8.
    """
    encoded = content.encode(errors="replace")
    if len(encoded) > WRITE_LIMIT_BYTES:
        raise ToolRetry(f"content is {len(encoded)} bytes; at most {WRITE_LIMIT_BYTES} fit in one write.")
    written = ctx.effects.write_file(path, encoded, ctx.turn)
    return f"Wrote {len(encoded)} bytes to {written}."


def _lines_of(content: bytes) -> list[str]:
    """Numbered as editors, grep and sed number them: only a line feed ends a line."""
    lines = content.decode(errors="replace").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _notes_on(part: FilePart) -> list[str]:
    """What the lines alone would hide."""
    notes = []
    if part.size_bytes > len(part.content):
        notes.append(f"[only the first {len(part.content)} of {part.size_bytes} bytes were looked at]")
    if b"\r\n" in part.content:
        notes.append("[lines end in CRLF]")
    try:
        part.content[: len(part.content) - 4].decode()  # the window may end inside a character
    except UnicodeDecodeError:
        notes.append("[not UTF-8: bytes that could not be read are shown as �]")
    return notes
