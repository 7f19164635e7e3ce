"""Replies wait for the local client, whose acknowledgement makes them delivered."""

from __future__ import annotations

from fermix.channels.port import Chunk, Delivery


class LocalChannel:
    """The client reads a turn's events itself; nothing is pushed, so nothing is ever sent twice."""

    name = "local"
    can_tell_duplicates = True

    def split(self, text: str) -> list[str]:
        return [text]

    def send(self, chunk: Chunk) -> Delivery:
        return Delivery.DEFERRED
