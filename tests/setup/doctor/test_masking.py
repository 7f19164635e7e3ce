"""No known secret, nothing that looks like one, and no person's home gets through the mask."""

from __future__ import annotations

import base64
import json
import textwrap
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermix.setup.doctor.masking import MASK, PIECE, Mask

SECRET = 'Tr0ub/4dor&3 "horse"+battery=staple%'
PLAIN = "blue-whale-sings-1987"
LOG = "2026-11-30T18:05:00.123Z INFO    fermix.daemon.worker [4711] [-] "


def holds_piece(text: str, secret: str, length: int = PIECE) -> bool:
    return any(secret[at : at + length] in text for at in range(len(secret) - length + 1))


@pytest.mark.parametrize("secret", [SECRET, PLAIN])
@pytest.mark.parametrize(
    "spelled",
    [
        str,
        quote,
        quote_plus,
        lambda text: quote(text, safe="").lower(),
        lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
        lambda text: json.dumps({"value": text}),
        lambda text: text.encode().hex(),
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.b64encode(b"user:" + text.encode()).decode(),
        lambda text: base64.urlsafe_b64encode(b"ab" + text.encode() + b"xyz").decode(),
        lambda text: text[:9] + "\n" + text[9:],
        lambda text: "\n".join(textwrap.wrap(text, 3, drop_whitespace=False)),
        lambda text: f"{text[:5]}\n{LOG}{text[5:10]}\n{LOG}{text[10:]}",
        lambda text: text[3:-3],
    ],
)
def test_known_secret_is_taken_out_however_it_is_spelled(
    secret: str, spelled: Callable[[str], str]
) -> None:
    written = spelled(secret)

    shown = Mask([secret]).text(f"before {written} after")

    assert not holds_piece(shown, secret)
    assert not holds_piece(shown.replace("\n", ""), secret)
    for line in written.splitlines():
        if len(line) >= PIECE and line != LOG:
            assert line not in shown
    assert shown.startswith("before") and shown.endswith("after")


def test_secret_of_several_lines_is_taken_out_line_by_line() -> None:
    secret = "first line of it\nsecond line of it\n"

    shown = Mask([secret]).text("saw 'second line of it' and first line of it")

    assert "line of it" not in shown


def test_short_known_secret_is_taken_out_whole() -> None:
    assert Mask(["hunter2"]).text("it is hunter2!") == f"it is {MASK}!"


def test_too_short_a_secret_does_not_blacken_words() -> None:
    assert Mask(["on"]).text("connection is on") == "connection is on"


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("key sk-proj-abcdef123456 used", "abcdef"),
        ("Authorization: Bearer abc.def-ghi", "abc.def"),
        ("authorization=Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("GET https://user:pa55@host.example/x", "pa55"),
        ("proxy http://me:t%40p@10.0.0.1:3128/", "t%40p"),
        ("?api_key=short7&x=1", "short7"),
        ("token: 'a b c d'", "a b c d"),
        ('{"password": "p w"}', "p w"),
        ("X-Api-Key: zzzzzz", "zzzzzz"),
        ("FERMIX_SECRET_TELEGRAM=abc", "=abc"),
        ("Environment=OPENAI_API_KEY=abc1", "abc1"),
        ("bot 1234567890:AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQ", "AAbbCC"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "0123456789"),
        ("xoxb-123456789012-abcdefghijkl", "123456789012"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123", "hbGci"),
        ("sum d41d8cd98f00b204e9800998ecf8427e", "d41d8cd9"),
        ("aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1", "aB3dE5"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEabc\n-----END PRIVATE KEY-----", "MIIEabc"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEcut", "MIIEcut"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, gone: str) -> None:
    shown = Mask([]).text(text)

    assert gone not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "@secret:openrouter"',
        f"{LOG}turn 01JAB2CD3EF4GH5JK6MN7PQ8RS ended after 12 ms",
        "input_tokens: 512, max_tokens: 4096",
        "Port 4030 is held by 'python3' (pid 123)",
        "/usr/lib/python3/dist-packages/Some_Module-1.2.3/thing.py",
        "ExecStart=/opt/fermix/fermix run",
    ],
)
def test_what_helps_is_left(text: str) -> None:
    assert Mask(["a-secret-of-mine"]).text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/people/anna/.fermix/memory.db", "~/.fermix/memory.db"),
        ("in '/srv/people/anna'", "in '~'"),
        ("/srv/people/annabel/x", "/srv/people/annabel/x"),
        ("file:///home/bert/x and /Users/carl/y", "file://~/x and ~/y"),
        ("/root/.fermix", "~/.fermix"),
        ("/opt/root/x", "/opt/root/x"),
    ],
)
def test_way_to_a_persons_home_is_a_tilde(text: str, shown: str) -> None:
    assert Mask([], user_homes=["/srv/people/anna", "/"]).text(text) == shown


def test_values_of_json_stay_json() -> None:
    mask = Mask([PLAIN], user_homes=["/srv/anna"])
    facts = {
        "home": "/srv/anna/.fermix",
        "port": 4030,
        "is_ok": None,
        "api_key": "short",
        "list": [f"it was {PLAIN}", 1.5, True],
        PLAIN: {"max_tokens": 4096},
    }

    assert mask.value(facts) == {
        "home": "~/.fermix",
        "port": 4030,
        "is_ok": None,
        "api_key": MASK,
        "list": [f"it was {MASK}", 1.5, True],
        MASK: {"max_tokens": 4096},
    }


def test_masking_again_changes_nothing() -> None:
    mask = Mask([SECRET, PLAIN])
    once = mask.text(f'token="{SECRET}" {PLAIN} sk-abcdefgh12 Bearer abcdefgh user:pw@h')

    assert mask.text(once) == once


@settings(max_examples=150, deadline=None)
@given(
    secret=st.text(
        st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("Cs",)),
        min_size=12,
        max_size=80,
    ),
    before=st.text("ab ./-\n", max_size=40),
    cuts=st.lists(st.integers(1, 79), max_size=4),
)
def test_no_piece_of_any_secret_survives(secret: str, before: str, cuts: list[int]) -> None:
    edges = [0, *sorted({cut for cut in cuts if cut < len(secret)}), len(secret)]
    cut = f"\n{LOG}".join(secret[start:end] for start, end in pairwise(edges))

    for way in (secret, quote(secret, safe=""), json.dumps(secret), cut):
        shown = Mask([secret]).text(f"{before}{way}{before[::-1]}")
        assert not holds_piece(shown, secret)
        assert not holds_piece("".join(shown.replace(LOG, "").split()), "".join(secret.split()))


@pytest.mark.parametrize(
    "piece",
    ["a-", "eyJa-", "key ", "token: ", 'token: "', "://a:", "-----BEGIN ", "1:", "A1b", "Z ", "/home/"],
)
def test_hostile_lines_are_masked_in_the_time_of_ordinary_ones(piece: str) -> None:
    """A pattern that goes back over the whole text at each sign would need hours for this."""
    assert Mask([PLAIN]).text(piece * (400_000 // len(piece)))
