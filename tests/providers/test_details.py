"""Pieces of native thinking on the chat wire are whole when they are sent back."""

from fermix.providers.apis.details import Details


def test_pieces_of_one_detail_are_joined_and_its_signature_kept() -> None:
    details = Details()
    details.add({"type": "reasoning.text", "index": 0, "text": "Let me ", "signature": None})
    details.add({"type": "reasoning.text", "index": 0, "text": "see."})
    details.add({"type": "reasoning.text", "index": 0, "text": None, "signature": "c2ln"})
    details.add({"type": "reasoning.encrypted", "index": 1, "data": "gA"})
    details.add({"type": "reasoning.encrypted", "index": 1, "data": "AA", "id": "rs_1"})

    assert details.whole() == [
        {"type": "reasoning.text", "index": 0, "text": "Let me see.", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "index": 1, "data": "gAAA", "id": "rs_1"},
    ]


def test_what_has_no_text_stays_as_it_came() -> None:
    details = Details()
    details.add({"type": "reasoning.text", "index": 0, "text": None})

    assert details.whole() == [{"type": "reasoning.text", "index": 0, "text": None}]


def test_more_than_can_be_sent_back_is_left_out_whole() -> None:
    many, long = Details(), Details()
    for index in range(2000):
        many.add({"type": "reasoning.text", "index": index, "text": "x"})
        long.add({"type": "reasoning.text", "index": 0, "text": "x" * 2000})

    assert many.whole() == long.whole() == []
