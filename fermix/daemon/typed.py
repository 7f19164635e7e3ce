"""What people typed at the chat's prompt, kept for the arrow keys: deleted words go from there too."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path

from fermix.config.atomic import write_atomically
from fermix.gateway.erase import digest_of


def forget(path: Path, digests: Collection[bytes]) -> int:
    """Take the texts of these digests out of the file; how many there were.

    Source: prompt_toolkit.history.FileHistory: a comment with the time, then the text's lines, each
    behind a `+`.
    Raises: OSError; then the file is as it was.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return 0
    # Not `splitlines`: a carriage return within a text ends no line of the file.
    entries = list(_entries(BytesIO(raw).readlines()))
    kept = [lines for lines in entries if digest_of(_text(lines)) not in digests]
    if len(kept) < len(entries):
        write_atomically(path, b"".join(line for lines in kept for line in lines), mode=0o600)
    return len(entries) - len(kept)


def _entries(lines: list[bytes]) -> Iterator[list[bytes]]:
    """The lines of each text with the comment above them."""
    entry: list[bytes] = []
    for line in lines:
        if entry and entry[-1].startswith(b"+") and not line.startswith(b"+"):
            yield entry
            entry = []
        entry.append(line)
    if entry:
        yield entry


def _text(lines: list[bytes]) -> str:
    return b"".join(line[1:] for line in lines if line.startswith(b"+")).decode(errors="replace")
