"""`fermix usage`: tokens and money, call by call summed up."""

from __future__ import annotations

import re
import time
from datetime import date, datetime
from typing import Any

import click

from fermix.cli.completing import session_names
from fermix.cli.door import Door
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.terminal import one_line
from fermix.errors import UsageError
from fermix.messages import Usage
from fermix.usage.spent import Spent
from fermix.usage.words import cost

KINDS = ("day", "model", "provider", "conversation", "job", "turn", "purpose")
_HEAD = ("calls", "read", "cached", "written", "cost")
_TIMEOUT_S = 30.0
_SPAN = re.compile(r"([0-9]{1,5})([hdw])")
_UNIT_S = {"h": 3600, "d": 86_400, "w": 604_800}
_NAME_WIDTH = 48


@click.command(
    epilog=examples(
        "fermix usage",
        "fermix usage --by model --since 7d",
        "fermix usage --session main --since all",
        "fermix usage --by conversation --since 2026-12-01 --json",
    )
)
@click.option(
    "--by", type=click.Choice(KINDS), default="day", show_default=True, help="What one line is about."
)
@click.option(
    "--since",
    metavar="WHEN",
    default="30d",
    show_default=True,
    help="A day like 2026-12-01, a span like 12h, 7d or 4w, or all.",
)
@click.option(
    "--session", metavar="NAME", shell_complete=session_names, help="Only what was said in one session."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=1000),
    default=100,
    show_default=True,
    help="Most lines to show.",
)
@json_option
def command(by: str, since: str, session: str | None, limit: int, as_json: bool) -> None:
    """Show what models were asked and what it cost.

    A price that is not known is shown as unknown, tokens that no provider counted with a ~.
    """
    asked: dict[str, Any] = {"by": by, "since_ms": _since_ms(since), "limit": limit}
    if session is not None:
        asked["session"] = session
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        answer = connection.call("usage.report", asked, _TIMEOUT_S)
    if as_json:
        print_json(answer)
        return
    lines = answer.get("lines") or []
    if not lines:
        print("No model was asked in this time.")
        return
    rows = [(_name(each, by), *_columns(_spent(each))) for each in lines]
    _print_table([("", *_HEAD), *rows, ("total", *_columns(_spent(answer["total"])))])


def _since_ms(words: str) -> int:
    """Raises: UsageError when it is no moment."""
    if words == "all":
        return 0
    if span := _SPAN.fullmatch(words):
        return max(0, round((time.time() - int(span[1]) * _UNIT_S[span[2]]) * 1000))
    try:
        day = date.fromisoformat(words)
        begins = datetime(day.year, day.month, day.day).astimezone()
        return max(0, round(begins.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{words[:40]!r} is no time; expected a day like 2026-12-01, a span like 12h, 7d or 4w, or all."
        ) from None


def _name(line: dict[str, Any], by: str) -> str:
    return one_line(str(line.get("name") or ""), _NAME_WIDTH) or f"(no {by})"


def _spent(line: dict[str, Any]) -> Spent:
    return Spent(
        line["calls"],
        Usage(line["input_tokens"], line["output_tokens"], line["cached_tokens"]),
        line["priced_micro_usd"],
        line["unpriced_calls"],
        line["estimated_calls"],
    )


def _columns(spent: Spent) -> tuple[str, ...]:
    about = "~" if spent.estimated else ""
    used = spent.usage
    return (
        f"{spent.calls:,}",
        f"{about}{used.input_tokens:,}",
        f"{used.cached_tokens:,}",
        f"{about}{used.output_tokens:,}",
        cost(spent).removeprefix("cost "),
    )


def _print_table(rows: list[tuple[str, ...]]) -> None:
    """The first column to the left, numbers to the right, the last, which may be words, as it is."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for name, *numbers, last in rows:
        cells = [f"{number:>{width}}" for number, width in zip(numbers, widths[1:], strict=True)]
        print(f"{name:<{widths[0]}}  {'  '.join(cells)}  {last}")
