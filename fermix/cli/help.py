"""`fermix help`: the same texts as `--help`, in the order people type it."""

from __future__ import annotations

import click

from fermix.cli.completing import command_names
from fermix.cli.options import examples, json_option, print_json


@click.command(epilog=examples("fermix help", "fermix help ask", "fermix help sessions show"))
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=command_names)
@json_option
@click.pass_context
def command(context: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """Say what fermix, or one command of it, can do."""
    found = context.find_root()
    for word in words:
        group = found.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"'{found.command_path}' has no commands of its own.", found)
        name, inner, _ = group.resolve_command(found, [word])
        assert inner is not None, "resolve_command raises for an unknown name"
        found = click.Context(inner, info_name=name, parent=found)
    text = found.get_help()
    if as_json:
        print_json({"command": found.command_path, "help": text})
    else:
        print(text)
