"""What every command has in common: `--json`, examples, the home."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from typing import TypeVar

import click

from fermix.cli.terminal import print_json
from fermix.paths import Home

__all__ = ["Group", "examples", "json_option", "model_options", "own_home", "print_json"]

F = TypeVar("F", bound=Callable[..., object])


class Group(click.Group):
    """A group that answers a command it does not have with the nearest one it has."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word.startswith("-") or self.get_command(ctx, word) is not None:
            return super().resolve_command(ctx, args)
        names = self.list_commands(ctx)
        nearest = difflib.get_close_matches(word, names, n=1)
        asked = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise click.UsageError(f"No command named {word!r}.{asked} Available: {', '.join(names)}.", ctx)


def json_option(function: F) -> F:
    """`--json`: the answer, and a failure, as one JSON object on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, errors too.")(function)


def model_options(function: F) -> F:
    """`--model` and `--effort`: who answers, where it is not to be the one of the settings."""
    effort = click.option("--effort", metavar="LEVEL", help="How hard the model is to think.")
    model = click.option(
        "--model", metavar="PROVIDER/MODEL", help="The model to ask this time; PROVIDER alone has its own."
    )
    return model(effort(function))


def examples(*lines: str) -> str:
    """The epilog of a command: what people type."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def own_home() -> Home:
    """The home of whoever runs this command."""
    return Home.find(os.environ)
