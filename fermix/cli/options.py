"""What every command has in common: `--json`, examples, the home."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fermix.paths import Home

F = TypeVar("F", bound=Callable[..., object])


def json_option(function: F) -> F:
    """`--json`: the answer, and a failure, as one JSON object on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, errors too.")(function)


def examples(*lines: str) -> str:
    """The epilog of a command: what people type."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on a line of its own."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def own_home() -> Home:
    """The home of whoever runs this command."""
    return Home.find(os.environ)
