"""`fermix models`: which models could answer; read from files, no daemon is asked."""

from __future__ import annotations

import dataclasses
import os

import click

from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.terminal import one_line
from fermix.daemon.sections import load_settings
from fermix.providers.catalog import ModelFact, list_models


@click.group(cls=Group, epilog=examples("fermix models list", "fermix models list --json"))
def group() -> None:
    """See which models could answer."""


@group.command("list", epilog=examples("fermix models list", "fermix models list --json"))
@json_option
def list_all(as_json: bool) -> None:
    """List the models of this machine and of the configured providers."""
    home = own_home()
    facts = list_models(load_settings(home, os.environ), home, os.environ)
    if as_json:
        print_json({"models": [dataclasses.asdict(fact) for fact in facts]})
        return
    if not facts:
        print("No models. Name a provider with: fermix config set providers.NAME.base_url https://HOST/v1")
    rows = [_row(fact) for fact in facts]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(fact: ModelFact) -> tuple[str, ...]:
    size = "" if fact.size_bytes is None else f"{fact.size_bytes / 1_000_000:.0f} MB"
    mark = "*" if fact.in_use else " "
    return (mark, one_line(fact.name, 50), one_line(fact.provider, 30), size, one_line(fact.where, 100))
