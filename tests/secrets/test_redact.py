"""Known secrets are cut out of text on its way out."""

from __future__ import annotations

import random
import time
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from fermix.secret import Secret
from fermix.secrets import Redactor, StreamRedactor


def redactor_of(*texts: str) -> Redactor:
    redactor = Redactor()
    for text in texts:
        redactor.add(Secret(text))
    return redactor


def test_every_occurrence_is_replaced() -> None:
    assert redactor_of("token-123").redact("a token-123, 'token-123'token-123") == "a ***, '***'***"


def test_a_secret_that_contains_another_is_replaced_whole() -> None:
    redactor = redactor_of("secret", "secret-and-more")

    assert redactor.redact("secret-and-more, secret") == "***, ***"


def test_short_values_are_left_alone() -> None:
    assert redactor_of("abc", "", "12345").redact("abc 12345") == "abc 12345"


def test_a_value_is_replaced_where_it_stands_in_a_url() -> None:
    redactor = redactor_of("a b/c+d=é")

    for text in (quote("a b/c+d=é"), quote("a b/c+d=é", safe=""), quote_plus("a b/c+d=é")):
        assert redactor.redact(f"https://x/?k={text}&y") == "https://x/?k=***&y"
        assert redactor.redact(f"https://x/?k={text.lower()}&y") == "https://x/?k=***&y"


def test_a_pattern_character_means_itself() -> None:
    assert redactor_of("a.*b[c]").redact("axxb[c] a.*b[c]") == "axxb[c] ***"


@given(secrets=st.lists(st.text(min_size=6), max_size=5), around=st.text())
def test_no_known_secret_is_left_in_any_text(secrets: list[str], around: str) -> None:
    redacted = redactor_of(*secrets).redact(around.join(["", *secrets, ""]))

    known = {each.strip() for each in secrets}
    assert not any(
        each in redacted for each in known if len(each) >= 6 and "*" not in each and each not in around
    )


def test_a_hundred_secrets_cost_little() -> None:
    redactor = redactor_of(*(random.Random(seed).randbytes(16).hex() for seed in range(100)))
    line = "12:00:00 info turn 01J0000000000000000000000 model call took 312 ms, 1200 tokens in" * 4
    started = time.process_time()

    for _ in range(1000):
        redactor.redact(line)

    assert time.process_time() - started < 5


def in_pieces(redactor: Redactor, *pieces: str) -> list[str]:
    stream = StreamRedactor(redactor)
    return [*(stream.feed(piece) for piece in pieces), stream.finish()]


def test_a_secret_split_over_pieces_is_never_shown() -> None:
    shown = in_pieces(redactor_of("token-123"), "it is to", "ken", "-12", "3.", " Good")

    assert shown == ["it is ", "", "", "***.", " Good", ""]


def test_what_only_began_like_a_secret_is_shown_as_soon_as_that_is_known() -> None:
    assert in_pieces(redactor_of("token-123"), "a to", "n of it, tok") == ["a ", "ton of it, ", "tok"]


def test_a_secret_that_may_go_on_as_another_is_held_until_it_is_known() -> None:
    redactor = redactor_of("secret", "secret-and-more", "etched")

    assert in_pieces(redactor, "a secret", "-and-", "more") == ["a ", "", "***", ""]
    assert in_pieces(redactor, "a secret", "ched") == ["a ", "***ched", ""]


def test_a_stream_without_secrets_is_passed_on_as_it_comes() -> None:
    assert in_pieces(Redactor(), "a", "b") == ["a", "b", ""]


@given(
    secrets=st.lists(st.text("ab%", min_size=6, max_size=9), max_size=4),
    pieces=st.lists(st.text("ab%c", max_size=7), max_size=30),
)
def test_pieces_are_redacted_as_the_whole_is(secrets: list[str], pieces: list[str]) -> None:
    redactor = redactor_of(*secrets)

    assert "".join(in_pieces(redactor, *pieces)) == redactor.redact("".join(pieces))
