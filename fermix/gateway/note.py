"""What a model is told of a message: the words, and the line fermix puts beneath them.

The line says when and where they were said. It is stored with the message, so that the same bytes are
sent again with every later call, and nothing of it has to stand in the instructions, in front of what a
provider has in its cache.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from fermix.gateway.authorizer import LOCAL
from fermix.gateway.inbox import InboxEntry
from fermix.messages import Image, UserMessage
from fermix.trust import Trust

FindPictures = Callable[[list[str]], tuple[Image, ...]]
"""Which of some files can be shown to a model."""


def words_of(entry: InboxEntry, now_ms: int, find_pictures: FindPictures) -> UserMessage:
    """The message as a model is given it, with a line for each file that came along."""
    files = entry.inbound.attachments
    lines = [
        f"[attached: {file.name} ({file.media_type}, {file.size_bytes} bytes) at {file.path}]"
        for file in files
    ]
    images = find_pictures([file.path for file in files]) if files else ()
    return UserMessage("\n".join([entry.inbound.text, *lines]), note_of(entry, now_ms), images)


def note_of(entry: InboxEntry, now_ms: int) -> str:
    """`[Tue 2026-12-01 13:05 +01:00, in /home/ada]`; a place only where it is not the usual one."""
    now = datetime.fromtimestamp(now_ms / 1000).astimezone()
    zone = f"{now:%z}"
    told = [f"{now:%a %Y-%m-%d %H:%M} {zone[:3]}:{zone[3:5]}"]
    if entry.key.channel != LOCAL:
        told.append(f"on {entry.key.channel}")
    if entry.standing.trust is not Trust.OPERATOR:
        told.append("by a guest")
    elif (cwd := entry.inbound.cwd) is not None:
        told.append(f"in {cwd if cwd.isprintable() else ascii(cwd)}")
    return f"[{', '.join(told)}]"
