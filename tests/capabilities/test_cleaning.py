"""What is taken out of a terminal's output, and what must stay."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.capabilities.cleaning import PIECE_LENGTH, clean

CORPUS = sorted((Path(__file__).parent.parent / "fixtures/tool_outputs").glob("*.txt"))


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("\x1b[1;32mok\x1b[0m\n", "ok\n"),
        ("\x1b]0;a title\x07text \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "text link"),
        ("N\bNA\bAM\bME\bE\n", "NAME\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a \t\nb\x00\x07\n", "a\nb\n"),
        ("Got 1%\rGot 50%\rGot 100%\nend\n", "Got 100%\nend\n"),
        ("⠋ wait\r⠙ wait\r⠹ wait\rdone here\n", "⠹ wait\ndone here\n"),
        ("⠋\x1b[1G\x1b[0Kfirst\n⠙\x1b[1G\x1b[0Ksecond\n", "first\nsecond\n"),
        ("error: no space\rGot 50%\n", "error: no space\nGot 50%\n"),
        ("a\n\n\n\nb\n", "a\n\nb\n"),
        ("x is unused\n" * 5, "x is unused\n[… the line above 4 more times …]\n"),
        ("wait\nretry\n" * 9 + "c\n", "wait\nretry\n[… the 2 lines above 8 more times …]\nc\n"),
        ("a\nb\n" * 4, "a\nb\n" * 4),
    ],
)
def test_noise_is_left_out(output: str, read: str) -> None:
    assert clean(output) == read


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\n",
        "no end of line",
        "a\n\nb\n",
        "twice\ntwice\n",
        "    indented\n\ttabbed\n",
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
        "/dev/sda1 100G 20% /1\n/dev/sda2 100G 30% /2\n/dev/sda3 100G 90% /3\n",
        "".join(f"cpu{number} {share}%\n" for number, share in enumerate([9, 3, 8, 4, 7, 1, 2, 6, 5, 0])),
        "ssh-rsa " + base64.b64encode(bytes(range(256)) * 2).decode()[:716] + " ada@example\n",
        "0123456789abcdef" * 200 + "\n",
        "x" * 3000 + "\n",
        '{"a": 1}\n',
        "{\nnot json\n}\n",
    ],
)
def test_what_may_mean_something_stays(output: str) -> None:
    assert clean(output) == output


def test_json_loses_the_white_space_between_its_tokens_only() -> None:
    document = {"text": 'two  blanks, a \\ and a "', "numbers": [1.0, 10**30, 1e-7], "empty": {}}
    output = json.dumps(document, indent=4).replace("1e-07", "1e-7") + "\n"

    cleaned = clean(output)

    assert json.loads(cleaned) == document and "1e-7" in cleaned
    assert cleaned.count("\n") == 1 and len(cleaned) < len(output)


def test_long_base64_is_told_by_its_beginning_and_length_on_one_line_or_folded() -> None:
    encoded = base64.b64encode(bytes(range(256)) * 8).decode()
    folded = "\n".join(encoded[at : at + 76] for at in range(0, len(encoded), 76))
    told = f"{encoded[:24]}[… base64, {len(encoded)} characters …]"

    assert clean(f"before {encoded} after\n") == f"before {told} after\n"
    assert clean(f"head\n{folded}\ntail\n") == f"head\n{told}\ntail\n"


def test_a_running_gauge_is_told_by_its_last_state() -> None:
    states = "".join(f"[{'#' * number:<20}] {number * 5} of 100\n" for number in range(5, 20))

    assert clean(states + "done\n") == (
        f"[… 14 earlier states of the next line …]\n[{'#' * 19:<20}] 95 of 100\ndone\n"
    )


def test_long_output_is_cleaned_in_pieces_and_others_run_between() -> None:
    lines = "".join(f"\x1b[31mline {number}\x1b[0m\n" for number in range(30_000))
    pauses: list[None] = []

    cleaned = clean(lines, lambda: pauses.append(None))

    assert cleaned == "".join(f"line {number}\n" for number in range(30_000))
    assert len(pauses) >= len(lines) // (PIECE_LENGTH + 100)


@given(st.text(st.sampled_from('ab 1%#=\x1b[]m\r\n\b\\{}":'), max_size=200))
def test_nothing_becomes_longer_and_no_control_character_stays(output: str) -> None:
    cleaned = clean(output)

    assert len(cleaned) <= len(output)
    assert not {"\x1b", "\r", "\b"} & set(cleaned)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_recorded_outputs_keep_their_words(path: Path) -> None:
    output = path.read_bytes().decode()
    shown = re.sub(r"\x1b\[[0-?]*[A-Za-z]|.\x08", "", output)

    cleaned = clean(output)

    assert len(cleaned) <= len(output)
    if path.stem != "base64_file":
        assert set(re.findall(r"[A-Za-z]{4,}", shown)) <= set(re.findall(r"[A-Za-z]{4,}", cleaned))
