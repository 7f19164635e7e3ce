"""`fermix tokens`: made once, shown once, listed and taken back."""

from __future__ import annotations

import json
from typing import Any

TOKEN = "fx_" + "a" * 43


def test_a_token_is_printed_once_alone_on_stdout(fermix: Any, daemon: Any) -> None:
    daemon.on["tokens.create"] = lambda request: request.result(name="laptop", token=TOKEN)

    done = fermix("tokens", "create", "laptop")
    as_json = fermix("tokens", "create", "laptop", "--json")

    assert (done.exit_code, done.stdout) == (0, f"{TOKEN}\n")
    assert TOKEN not in done.stderr
    assert "fermix tokens revoke laptop" in done.stderr
    assert json.loads(as_json.stdout) == {"name": "laptop", "token": TOKEN}
    assert daemon.asked("tokens.create") == [{"name": "laptop"}] * 2


def test_tokens_are_listed_with_when_they_were_used(fermix: Any, daemon: Any) -> None:
    tokens = [
        {"name": "laptop", "created_ms": 1_700_000_000_000, "last_used_ms": 1_700_100_000_000},
        {"name": "ci", "created_ms": 1_700_000_000_000, "last_used_ms": None},
    ]
    daemon.on["tokens.list"] = lambda request: request.result(tokens=tokens)

    done = fermix("tokens", "list")
    as_json = fermix("tokens", "list", "--json")

    first, second = done.stdout.splitlines()
    assert first.startswith("laptop  made 2023-")
    assert "used 2023-" in first
    assert second.startswith("ci      made ")
    assert second.endswith("never used")
    assert json.loads(as_json.stdout) == {"tokens": tokens}


def test_no_token_is_said_with_the_way_to_one(fermix: Any, daemon: Any) -> None:
    daemon.on["tokens.list"] = lambda request: request.result(tokens=[])

    assert "fermix tokens create NAME" in fermix("tokens", "list").stdout


def test_a_token_is_taken_back(fermix: Any, daemon: Any) -> None:
    daemon.on["tokens.revoke"] = lambda request: request.result(revoked="laptop")

    done = fermix("tokens", "revoke", "laptop")

    assert (done.exit_code, done.stdout) == (0, "The token of 'laptop' counts no more.\n")


def test_a_refusal_of_the_daemon_is_told(fermix: Any, daemon: Any) -> None:
    daemon.on["tokens.revoke"] = lambda request: request.error(
        "token_unknown", "No token named 'lap'. Available: laptop.", "fermix tokens list"
    )

    done = fermix("tokens", "revoke", "lap")
    as_json = fermix("tokens", "revoke", "lap", "--json")

    assert (done.exit_code, done.stdout) == (1, "")
    assert "Available: laptop." in done.stderr
    assert json.loads(as_json.stdout)["error"]["code"] == "token_unknown"
