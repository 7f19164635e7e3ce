"""`fermix prompt-size`: parts with their bytes, and what is wrong with the owner's files."""

from __future__ import annotations

import json
from typing import Any

ANSWER = {
    "provider": "p",
    "model": "m",
    "parts": [
        {"kind": "instructions", "name": "identity", "bytes": 98, "tokens": 25},
        {"kind": "tool", "name": "shell", "bytes": 1412, "tokens": 353},
        {"kind": "message", "name": "ping", "bytes": 33, "tokens": 9},
        {"kind": "framing", "name": "", "bytes": 120, "tokens": 30},
    ],
    "total_bytes": 1663,
    "total_tokens": 417,
    "problems": [],
}


def test_parts_are_shown_with_their_sum(fermix: Any, daemon: Any) -> None:
    daemon.on["prompt.size"] = lambda request: request.result(**ANSWER)

    done, as_json = fermix("prompt-size"), fermix("prompt-size", "hello", "--json")

    assert done.stdout.splitlines() == [
        "                       bytes  ~tokens",
        "instructions identity     98       25",
        "tool shell             1,412      353",
        "message ping              33        9",
        "framing                  120       30",
        "total                  1,663      417",
    ]
    assert json.loads(as_json.stdout) == ANSWER
    assert daemon.asked("prompt.size") == [{"text": "ping"}, {"text": "hello"}]


def test_trouble_with_the_owners_files_is_told(fermix: Any, daemon: Any) -> None:
    daemon.on["prompt.size"] = lambda request: request.result(
        **{**ANSWER, "problems": ["'x' is too long."]}
    )

    done = fermix("prompt-size")

    assert (done.exit_code, done.stderr) == (0, "'x' is too long.\n")
