"""What is still to be written of a reply that is already partly shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.cli.reply import ReplyText

pieces = st.lists(st.text("ab \n", min_size=1, max_size=5), max_size=8)


def solid(text: str) -> str:
    return re.sub(r"\s+", "", text)


@given(pieces, st.data())
def test_text_streamed_again_after_a_restart_is_written_once(told: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(told)))
    reply = ReplyText()

    written = [reply.delta(piece) for piece in told[:cut]]
    reply.restarted()
    written += [reply.delta(piece) for piece in ("".join(told[:cut]), *told[cut:])]
    written.append(reply.finish("".join(told)))

    assert solid("".join(written)) == solid("".join(told))


@given(pieces, pieces)
def test_whatever_was_told_first_the_final_telling_is_shown_whole(
    first: list[str], second: list[str]
) -> None:
    reply = ReplyText()

    written = [reply.delta(piece) for piece in first]
    reply.restarted()
    written += [reply.delta(piece) for piece in second]
    written.append(reply.finish("".join(second)))

    assert solid("".join(written)).endswith(solid("".join(second)))


@given(st.lists(pieces, min_size=1, max_size=4), st.text("abc \n", max_size=20))
def test_final_text_is_never_lost(steps: list[list[str]], final: str) -> None:
    reply = ReplyText()
    written = ""
    for step in steps:
        for piece in step:
            written += reply.delta(piece)
        reply.step_ended()

    written += reply.finish(final)

    assert solid(final) in solid(written)


def test_steps_are_separated_by_a_blank_line() -> None:
    reply = ReplyText()

    written = reply.delta("Let me look.\n")
    reply.step_ended()
    written += reply.delta("Done.") + reply.finish("Done.")

    assert written == "Let me look.\n\nDone."


def test_rest_of_a_half_streamed_answer_is_added_without_a_gap() -> None:
    reply = ReplyText()

    assert reply.delta("Hel") + reply.finish("Hello") == "Hello"


@pytest.mark.parametrize(("again", "gap"), [("Pears.", "\n\n"), ("Apple", "\n\n")])
def test_a_different_or_shorter_telling_is_written_whole(again: str, gap: str) -> None:
    reply = ReplyText()

    written = reply.delta("Apples.")
    reply.restarted()
    written += reply.delta(again) + reply.finish(again)

    assert written == "Apples." + gap + again
