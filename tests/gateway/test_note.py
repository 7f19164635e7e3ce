"""The note beneath a person's words: when and where, on one line, the same for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from fermix.gateway.authorizer import ChannelAccess
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.note import note_of
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Standing
from tests.fakes import FakeChannel, inbound

NOON_MS = 1_764_590_400_000
"""2025-12-01 12:00 UTC, a Monday."""


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def note(standing: Standing = OPERATOR_ATTENDED, **fields: str) -> str:
    return note_of(InboxEntry("i", "t", inbound(**fields), standing, "received", 0), NOON_MS)


def test_note_tells_the_time_in_the_owners_zone() -> None:
    assert note() == "[Mon 2025-12-01 13:00 +01:00]"


def test_note_tells_where_when_that_is_not_the_usual_place() -> None:
    assert note(cwd="/home/ada") == "[Mon 2025-12-01 13:00 +01:00, in /home/ada]"
    assert note(GUEST_ATTENDED, channel="telegram", cwd="/home/ada") == (
        "[Mon 2025-12-01 13:00 +01:00, on telegram, by a guest]"
    )


def test_name_of_a_folder_cannot_end_the_note() -> None:
    assert note(cwd="/home/a]\n[x").endswith(r", in '/home/a]\n[x']")


def test_requests_of_a_conversation_begin_with_the_bytes_of_the_one_before(open_office) -> None:
    office = open_office()
    for number in range(4):
        office.say(f"message {number}", id=f"m{number}")
        office.clock.ms += 3_600_000

    requests = office.model.requests
    assert [request.messages[-1].note for request in requests[:2]] == [
        "[Tue 2023-11-14 23:13 +01:00]",
        "[Wed 2023-11-15 00:13 +01:00]",
    ]
    for before, after in pairwise(requests):
        assert after.system == before.system
        assert after.messages[: len(before.messages)] == before.messages


def test_instructions_are_the_same_wherever_a_message_comes_from(open_office) -> None:
    access = {"telegram": ChannelAccess("owner", ("friend",))}
    office = open_office(channels=(FakeChannel("telegram"),), access=access)
    office.say(id="m1")
    office.say(id="m2", channel="telegram", chat="c1", sender="owner")
    office.say(id="m3", channel="telegram", chat="c2", sender="friend")

    local, owner, guest = office.model.requests
    assert local.system == owner.system == guest.system
    assert "on telegram" in owner.messages[-1].note
    assert "by a guest" in guest.messages[-1].note


def test_next_life_sends_the_same_bytes_again(open_office) -> None:
    office = open_office()
    office.say("one", id="m1")
    office.clock.ms += 3_600_000
    clock = office.clock
    office = open_office(clock=clock)
    office.say("two", id="m2")

    assert office.model.requests[0].messages[0].note == "[Tue 2023-11-14 23:13 +01:00]"
