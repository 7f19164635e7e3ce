"""Every channel of the table opens and keeps the port's promises."""

from __future__ import annotations

from importlib import import_module

import pytest

from fermix.channels import CHANNELS
from fermix.channels.local import LocalChannel
from fermix.channels.port import Chunk, Delivery
from fermix.messages import ConversationKey


@pytest.mark.parametrize("name", CHANNELS)
def test_channel_is_where_the_table_says_and_has_its_name(name: str) -> None:
    module, _, attribute = CHANNELS[name].partition(":")
    channel = getattr(import_module(module), attribute)()

    assert channel.name == name
    assert isinstance(channel.can_tell_duplicates, bool)


@pytest.mark.parametrize("text", ["", "x", "x" * 100_000, "🙂\n" * 5000])
def test_local_channel_keeps_a_reply_whole_for_its_reader(text: str) -> None:
    channel = LocalChannel()
    chunk = Chunk("id", "turn", ConversationKey("local", "main"), 0, text)

    assert channel.split(text) == [text]
    assert channel.send(chunk) is Delivery.DEFERRED
