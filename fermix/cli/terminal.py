"""What a terminal may be sent: colours when it wants them, never someone else's control codes."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, TextIO

_STYLES = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33"}

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1: start of every escape sequence
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # line separators, bidi embeddings, overrides, isolates
    "\ud800-\udfff]"  # halves of characters
)


def escaped(text: str) -> str:
    """`text` with every character that could steer a terminal written out, like \\x1b.

    Model text, tool titles, file names and log lines come from anywhere.
    """
    return _UNSAFE.sub(_written_out, re.sub(r"\r(?=\n|\Z)", "", text))


def _written_out(match: re.Match[str]) -> str:
    number = ord(match.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def one_line(text: str, width: int) -> str:
    """The text on one line, safe, at most `width` characters."""
    flat = escaped(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: max(0, width - 1)] + "…"


def is_terminal(stream: TextIO) -> bool:
    """Whether a person's terminal is at the other end."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def is_one_place(one: TextIO, other: TextIO) -> bool:
    """Whether both go to the same file or pipe, as after `2>&1`."""
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError):  # closed, or no file at all
        return False


def has_cursor(stream: TextIO) -> bool:
    """Whether lines can be taken back and drawn again."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_style(stream: TextIO) -> bool:
    """Whether colours are welcome. Source: https://no-color.org"""
    return has_cursor(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, style: str, stream: TextIO) -> str:
    """`text` in a style, or as it is where styles are not welcome."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if has_style(stream) else text


def say(text: str) -> None:
    """One quiet line on stderr for the person who waits."""
    shown = escaped(text) if is_terminal(sys.stderr) else text
    print(paint(shown, "dim", sys.stderr), file=sys.stderr, flush=True)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on a line of its own."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def takes(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding has these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def prepare_streams() -> None:
    """Make sure that no character, and no stream that was closed, can end the program.

    What an encoding lacks is written out; a closed stream is an empty one.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115 (open for as long as the process)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (open for as long as the process)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def hush_output() -> None:
    """Let the interpreter end quietly though nobody reads its output any more."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(null, stream.fileno())
    os.close(null)
