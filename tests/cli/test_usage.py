"""`fermix usage`: a table of what models took, nothing made up where something is not known."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest


def line(name: str | None = None, **changes: object) -> dict[str, object]:
    named = {} if name is None else {"name": name}
    return {
        **named,
        "calls": 12,
        "input_tokens": 45_678,
        "cached_tokens": 30_000,
        "written_tokens": 0,
        "output_tokens": 2_345,
        "reasoning_tokens": 0,
        "cost_micro_usd": 1_234_000,
        "priced_micro_usd": 1_234_000,
        "unpriced_calls": 0,
        "estimated_calls": 0,
        **changes,
    }


def answering(daemon: Any, *lines: dict[str, object], total: dict[str, object]) -> dict[str, object]:
    answer = {"by": "day", "since_ms": 0, "lines": list(lines), "total": total}
    daemon.on["usage.report"] = lambda request: request.result(**answer)
    return answer


def test_days_are_shown_with_their_sum_and_unknown_prices_as_unknown(fermix: Any, daemon: Any) -> None:
    unknown = {"cost_micro_usd": None, "priced_micro_usd": 0, "unpriced_calls": 3, "estimated_calls": 3}
    answering(
        daemon,
        line("2026-12-01"),
        line("2026-11-30", calls=3, input_tokens=99, cached_tokens=0, output_tokens=7, **unknown),
        line("", cost_micro_usd=0, priced_micro_usd=0),
        total=line(calls=15, unpriced_calls=3, cost_micro_usd=None, estimated_calls=3),
    )

    done = fermix("usage")

    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "            calls     read  cached  written  cost",
        "2026-12-01     12   45,678  30,000    2,345  $1.23",
        "2026-11-30      3      ~99       0       ~7  unknown",
        "(no day)       12   45,678  30,000    2,345  $0",
        "total          15  ~45,678  30,000   ~2,345  at least $1.23 (price of 3 calls unknown)",
    ]


def test_what_is_asked_for_is_asked_of_the_daemon(fermix: Any, daemon: Any) -> None:
    answer = answering(daemon, line("openai/gpt"), total=line())
    week_ago_ms = (time.time() - 7 * 86_400) * 1000

    done = fermix("usage", "--by", "model", "--since", "7d", "--session", "main", "--json")
    fermix("usage", "--since", "all", "--limit", "3")
    fermix("usage", "--since", "2026-12-01", environment={"TZ": "Europe/Berlin"})

    first, second, third = daemon.asked("usage.report")
    assert json.loads(done.stdout) == answer
    assert first.pop("since_ms") == pytest.approx(week_ago_ms, abs=60_000)
    assert first == {"by": "model", "limit": 100, "session": "main"}
    assert second == {"by": "day", "since_ms": 0, "limit": 3}
    assert third["since_ms"] == 1_796_079_600_000


def test_nothing_asked_is_said(fermix: Any, daemon: Any) -> None:
    answering(daemon, total=line(calls=0))

    assert fermix("usage").stdout == "No model was asked in this time.\n"


@pytest.mark.parametrize("since", ["yesterday", "7", "-3d", "2026-13-01", "999999d2", ""])
def test_time_that_is_none_is_refused(fermix: Any, daemon: Any, since: str) -> None:
    done = fermix("usage", "--since", since)

    assert done.exit_code == 2
    assert "12h, 7d or 4w, or all" in done.stderr
    assert daemon.asked("usage.report") == []


def test_names_cannot_steer_the_terminal(fermix: Any, daemon: Any) -> None:
    answering(daemon, line("local:\x1b[2Jmain"), total=line())

    assert "\x1b" not in fermix("usage", "--by", "conversation").stdout
