"""Pictures that came with messages: told by their first bytes, read for a request, never a reason to fail.

Whatever is not a whole picture of a bearable size stays what it is for the model: a file named in the text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence

from fermix.messages import ChatMessage, Image, UserMessage

SIZE_LIMIT_BYTES = 3_932_160
"""Of one picture; 5,242,880 bytes as base64, the least that a vendor takes.

Source: https://github.com/anthropics/claude-code/issues/11181 (2025-11-07, the API's own words).
"""
MOST = 10
"""Pictures in one request, the latest; vendors bear smaller sizes the more there are."""
MOST_REFUSED = 1000
_HEAD_BYTES = 16


class Album:
    """The pictures of requests; those a model has refused are not shown to it again."""

    def __init__(self, read: Callable[[Sequence[Image]], Mapping[str, bytes]]) -> None:
        """`read` gives the bytes of those that can be read; it may take its time."""
        self._read = read
        self._refused: set[str] = set()

    def of(self, messages: Sequence[ChatMessage]) -> Mapping[str, bytes]:
        """By path, of these messages."""
        shown = [image for image in chosen(messages) if image.path not in self._refused]
        return self._read(shown) if shown else {}

    def refuse(self, paths: Iterable[str]) -> None:
        """Leave these out from now on: one that was refused would end every later turn too."""
        if len(self._refused) > MOST_REFUSED:
            self._refused.clear()
        self._refused.update(paths)


def kind_of(head: bytes) -> str | None:
    """The media type these first bytes belong to; None for what models are not shown."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def find(paths: Iterable[str]) -> tuple[Image, ...]:
    """Those of the files that can be shown, by what is in them and not by what they are called."""
    found = ((path, _head(path)) for path in paths)
    return tuple(Image(path, kind) for path, head in found if head and (kind := kind_of(head)))


def chosen(messages: Sequence[ChatMessage]) -> list[Image]:
    """The pictures a request of these messages may hold, the latest first."""
    picked: list[Image] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage) and message.images:
            picked += reversed(message.images)
            if len(picked) >= MOST:
                break
    return picked[:MOST]


def read(images: Iterable[Image]) -> dict[str, bytes]:
    """Their bytes by path; without those that are gone, or are not the picture any more that came."""
    found: dict[str, bytes] = {}
    for image in images:
        data = _read(image.path, SIZE_LIMIT_BYTES + 1)
        if data and len(data) <= SIZE_LIMIT_BYTES and kind_of(data) == image.media_type:
            found[image.path] = data
    return found


def _head(path: str) -> bytes | None:
    """The first bytes of a file that is not too long; None when it cannot be shown."""
    return _read(path, _HEAD_BYTES, longest=SIZE_LIMIT_BYTES)


def _read(path: str, count: int, *, longest: int | None = None) -> bytes | None:
    # Tools may write where the picture lies: a link put in its place must not lead out of the workspace,
    # nor may a pipe hold the thread.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or (longest is not None and found.st_size > longest):
                return None
            return file.read(count)
    except OSError:
        return None
