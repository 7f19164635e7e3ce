"""Server-sent events survive being cut anywhere."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermix.errors import Unreadable
from fermix.providers.apis.sse import SseEvent, SseParser

STREAM = (
    'retry: 3000\n\n: ping\n\ndata: {"a": "é😀"}\n\n'
    "event: error\r\ndata: x\r\ndata: y\r\n\r\nid: 7\n\ndata:last\n\n"
)
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVENTS = [SseEvent("", '{"a": "é😀"}'.encode()), SseEvent("error", b"x\ny"), SseEvent("", b"last")]


def parsed(pieces: list[bytes], **limits: int) -> list[SseEvent]:
    parser = SseParser(**limits)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.end()


def test_events_without_data_and_comments_are_skipped() -> None:
    assert parsed([STREAM.encode()]) == EVENTS


@UNHURRIED
@given(st.lists(st.integers(0, len(STREAM.encode())), max_size=20))
def test_cuts_anywhere_change_nothing(cuts: list[int]) -> None:
    whole = STREAM.encode()
    edges = [0, *sorted(cuts), len(whole)]
    assert parsed([whole[a:b] for a, b in pairwise(edges)]) == EVENTS


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts(end: str) -> None:
    text = f"data: one{end}{end}data: two{end}{end}".encode()
    assert [event.data for event in parsed([bytes([byte]) for byte in text])] == [b"one", b"two"]


def test_a_body_without_its_last_blank_line_keeps_its_last_event() -> None:
    assert parsed([b"data: one\n\ndata: two"]) == [SseEvent("", b"one"), SseEvent("", b"two")]


@pytest.mark.parametrize("piece", [b"data: xxxxxxxxxx", b"data: xxxxxxxxxx\n"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    with pytest.raises(Unreadable, match="larger than 100 bytes"):
        parsed([piece] * 20, limit_bytes=100)
