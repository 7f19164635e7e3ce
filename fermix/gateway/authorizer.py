"""Who a sender is to us, decided from settings alone, before anything is stored or spent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Standing, Trust

LOCAL = "local"
"""The channel of people at this machine; its socket admits only the owner's own processes."""


@dataclass(frozen=True, slots=True)
class ChannelAccess:
    """Whom one channel lets in; ids are the platform's own, compared as text."""

    owner_user_id: str | None = None
    """None: nobody is operator on this channel."""
    allowed_user_ids: Collection[str] = ()
    """Empty: nobody is a guest."""


def authorize(channel: str, sender_id: str, access: Mapping[str, ChannelAccess]) -> Standing:
    """The standing of a sender; a channel nobody configured admits nobody."""
    if channel == LOCAL:
        return OPERATOR_ATTENDED
    rules = access.get(channel, ChannelAccess())
    if sender_id and sender_id == rules.owner_user_id:
        return OPERATOR_ATTENDED
    if sender_id and sender_id in rules.allowed_user_ids:
        return GUEST_ATTENDED
    return Standing(Trust.DENIED)
