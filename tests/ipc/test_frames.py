"""Frames of the control socket."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.errors import ProtocolError
from fermix.ipc.frames import FRAME_LIMIT_BYTES, FrameReader, encode


@given(st.lists(st.binary(min_size=1, max_size=200), max_size=20), st.integers(1, 64))
def test_payloads_survive_any_cutting_of_the_stream(payloads: list[bytes], piece: int) -> None:
    stream = b"".join(encode(payload) for payload in payloads)
    reader = FrameReader()

    received = [
        payload
        for start in range(0, len(stream), piece)
        for payload in reader.feed(stream[start : start + piece])
    ]

    assert received == payloads
    assert not reader.is_inside_frame


def test_length_is_big_endian_and_counts_the_payload_only() -> None:
    assert encode(b"{}") == b"\x00\x00\x00\x02{}"


def test_oversized_frame_is_refused_by_its_length_alone() -> None:
    reader = FrameReader()

    with pytest.raises(ProtocolError, match=f"{FRAME_LIMIT_BYTES + 1} bytes") as refusal:
        reader.feed((FRAME_LIMIT_BYTES + 1).to_bytes(4))

    assert refusal.value.code == "frame_too_large"


def test_frame_of_the_limit_is_taken() -> None:
    assert FrameReader(limit_bytes=8).feed(encode(b"12345678", limit_bytes=8)) == [b"12345678"]


def test_empty_frame_is_refused() -> None:
    with pytest.raises(ProtocolError) as refusal:
        FrameReader().feed(b"\x00\x00\x00\x00")

    assert refusal.value.code == "frame_empty"


def test_too_large_a_payload_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ProtocolError) as refusal:
        encode(b"123456789", limit_bytes=8)

    assert refusal.value.code == "frame_too_large"


def test_reader_knows_that_a_frame_was_cut() -> None:
    reader = FrameReader()

    assert reader.feed(encode(b"{}")[:-1]) == []
    assert reader.is_inside_frame
