"""GGUF models: whether a file is a whole one that llama.cpp can load, and what its head says it can do."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fermix.errors import ModelUnusable

MAGIC = b"GGUF"
VERSIONS = (2, 3)
LEAST_BYTES = 24
"""Magic, version, number of tensors, number of key-value pairs."""

_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_ALIGNMENT_KEY = b"general.alignment"
_MOST_TENSORS = 1_000_000
_LONGEST_KEY = 65_535
_LONGEST_TEXT = 1024 * 1024
_HEAD_BYTES = 64 * 1024 * 1024
"""Where the search for a key ends: no head is longer."""
_TOOLS = b"tools"
"""What every template calls the tools it is given."""


def check_beginning(head: bytes, name: str) -> None:
    """Look at the first bytes of a file, at least LEAST_BYTES of them.

    Raises: ModelUnusable that says what the file is instead.
    Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (the head).
    """
    if not head.startswith(MAGIC):
        text = head.lstrip()[:15].lower()
        what = "a web page" if text.startswith((b"<!doctype", b"<html", b"<?xml")) else "no GGUF file"
        raise ModelUnusable(
            f"{name!r} is {what}: it begins with {head[:8]!r}; expected {MAGIC!r}.",
            hint="Give the address of the file itself, which ends in .gguf",
        )
    if len(head) < LEAST_BYTES:
        raise ModelUnusable(f"{name!r} is cut off: {len(head)} bytes.")
    version, tensors = struct.unpack_from("<IQ", head, len(MAGIC))
    if version not in VERSIONS:
        is_swapped = int.from_bytes(head[4:8], "big") in VERSIONS
        what = "big-endian" if is_swapped else f"GGUF of version {version}"
        raise ModelUnusable(f"{name!r} is {what}; expected little-endian GGUF of version 2 or 3.")
    if not 0 < tensors <= _MOST_TENSORS:
        raise ModelUnusable(f"{name!r} names {tensors} tensors; a model has some, and no millions.")


def check_whole(path: Path, name: str) -> None:
    """Follow the head to the last tensor: a file that ends before it was cut off.

    Raises: ModelUnusable; OSError when it cannot be read.
    """
    with path.open("rb") as file:
        check_beginning(file.read(LEAST_BYTES), name)
        size = file.seek(0, os.SEEK_END)
        file.seek(len(MAGIC) + 4)
        try:
            end = _last_tensor(_Reader(file, size))
        except (struct.error, ValueError) as exc:
            raise ModelUnusable(f"{name!r} is cut off or damaged: {exc}.") from exc
    if end >= size:
        raise ModelUnusable(f"{name!r} is cut off: {size} bytes, and its last tensor begins at {end}.")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file says of its model."""

    window_tokens: int | None = None
    """As it was trained; None when the file does not say."""
    takes_tools: bool = False
    """Whether its template of a conversation has a place for tools."""


def facts_of(path: Path) -> FileFacts:
    """What the file says; nothing when it cannot be read.

    The keys are searched for instead of read one after the other: between them stand a hundred thousand
    words of the tokenizer, too many to step over while others wait.
    Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (`general.architecture`,
    `[llm].context_length`, `tokenizer.chat_template`), read 2026-12-01.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as head:
            architecture = _text_of(head, b"general.architecture")
            template = _text_of(head, b"tokenizer.chat_template")
            window = _number_of(head, architecture + b".context_length") if architecture else None
    except (OSError, ValueError):
        return FileFacts()
    return FileFacts(window, _TOOLS in template)


def _after(head: mmap.mmap, key: bytes) -> int:
    """Where the kind of a key's value stands; -1 when the key is not there."""
    at = head.find(struct.pack("<Q", len(key)) + key, 0, _HEAD_BYTES)
    return -1 if at < 0 else at + 8 + len(key)


def _text_of(head: mmap.mmap, key: bytes) -> bytes:
    at = _after(head, key)
    if at < 0 or head[at : at + 4] != struct.pack("<I", _STRING):
        return b""
    length = int.from_bytes(head[at + 4 : at + 12], "little")
    return head[at + 12 : at + 12 + min(length, _LONGEST_TEXT)]


def _number_of(head: mmap.mmap, key: bytes) -> int | None:
    at = _after(head, key)
    width = _WIDTHS.get(int.from_bytes(head[at : at + 4], "little")) if at >= 0 else None
    return int.from_bytes(head[at + 4 : at + 4 + width], "little") or None if width else None


class _Reader:
    """Numbers and texts one after the other."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def text(self) -> bytes:
        length = self.number(8)
        if length > _LONGEST_KEY:
            self.skip(length)
            return b""
        return self.take(length)

    def take(self, count: int) -> bytes:
        found = self._file.read(count)
        if len(found) < count:
            raise ValueError("its head does not end")
        return found

    def skip(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            raise ValueError("its head does not end")
        self._file.seek(count, os.SEEK_CUR)

    def position(self) -> int:
        return self._file.tell()


def _last_tensor(reader: _Reader) -> int:
    """Where the data of the last tensor begins."""
    tensors, pairs = reader.number(8), reader.number(8)
    alignment = 32
    for _ in range(pairs):
        key, kind = reader.text(), reader.number(4)
        if key == _ALIGNMENT_KEY and kind == 4:
            alignment = reader.number(4) or alignment
        else:
            _skip_value(reader, kind)
    last = 0
    for _ in range(tensors):
        reader.text()
        dimensions = reader.number(4)
        reader.skip(8 * dimensions + 4)
        last = max(last, reader.number(8))
    begin = reader.position()
    return begin + (-begin % alignment) + last


def _skip_value(reader: _Reader, kind: int) -> None:
    if kind == _STRING:
        reader.skip(reader.number(8))
    elif kind == _ARRAY:
        inner, count = reader.number(4), reader.number(8)
        if inner in _WIDTHS:
            reader.skip(_WIDTHS[inner] * count)
        elif inner == _STRING:
            for _ in range(count):
                reader.skip(reader.number(8))
        else:
            raise ValueError(f"it has an array of kind {inner}")
    elif kind in _WIDTHS:
        reader.skip(_WIDTHS[kind])
    else:
        raise ValueError(f"it has a value of kind {kind}")
