"""Who a sender is, for every kind of channel and sender."""

from __future__ import annotations

import pytest

from fermix.gateway.authorizer import ChannelAccess, authorize
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Standing, Trust

DENIED = Standing(Trust.DENIED)
ACCESS = {
    "telegram": ChannelAccess("100", ("200", "300")),
    "slack": ChannelAccess(None, ("200",)),
    "discord": ChannelAccess("100"),
    "closed": ChannelAccess(),
    "odd": ChannelAccess("", ("",)),
}


@pytest.mark.parametrize(
    ("channel", "sender", "standing"),
    [
        ("local", "uid 0", OPERATOR_ATTENDED),
        ("local", "", OPERATOR_ATTENDED),
        ("telegram", "100", OPERATOR_ATTENDED),
        ("telegram", "200", GUEST_ATTENDED),
        ("telegram", "300", GUEST_ATTENDED),
        ("telegram", "20", DENIED),
        ("telegram", "1000", DENIED),
        ("telegram", " 100", DENIED),
        ("telegram", "", DENIED),
        ("slack", "100", DENIED),
        ("slack", "200", GUEST_ATTENDED),
        ("discord", "100", OPERATOR_ATTENDED),
        ("discord", "200", DENIED),
        ("closed", "100", DENIED),
        ("odd", "", DENIED),
        ("unheard of", "100", DENIED),
        ("LOCAL", "100", DENIED),
    ],
)
def test_sender_is_who_the_settings_say(channel: str, sender: str, standing: Standing) -> None:
    assert authorize(channel, sender, ACCESS) == standing
