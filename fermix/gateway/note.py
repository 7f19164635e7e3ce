"""The line fermix puts beneath a person's words: when and where they were said.

It is stored with the message, so that the same bytes are sent again with every later call, and nothing of
it has to stand in the instructions, in front of what a provider has in its cache.
"""

from __future__ import annotations

from datetime import datetime

from fermix.gateway.authorizer import LOCAL
from fermix.gateway.inbox import InboxEntry
from fermix.trust import Trust


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
