"""`fermix logs`: the end of the log, and what comes next."""

from __future__ import annotations

import sys

import click

from fermix.cli.log_file import follow, last_lines, tail_position
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.terminal import escaped, is_terminal, say
from fermix.errors import OwnerError


@click.command(
    epilog=examples("fermix logs", "fermix logs -n 200", "fermix logs -f", "fermix logs --turn 01J…")
)
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=50, show_default=True, help="Lines to show."
)
@click.option(
    "-f", "--follow", "is_following", is_flag=True, help="Go on with what comes next; Ctrl-C ends it."
)
@click.option("--turn", "turn_id", metavar="ID", help="Only what one turn did.")
@json_option
def command(lines: int, is_following: bool, turn_id: str | None, as_json: bool) -> None:
    """Show the daemon's log.

    With --json each line is an object of its own: {"line": "..."}.
    """
    log = own_home().log
    position = tail_position(log)
    try:
        shown = last_lines(log, lines, turn_id, end=position)
    except FileNotFoundError as exc:
        if not is_following:
            raise OwnerError(f"Nothing was logged yet in '{log}'.", hint="fermix start") from exc
        shown = []
    for line in shown:
        _show(line, as_json)
    if turn_id is not None and not shown and not as_json:
        say(f"No line of the log names the turn '{turn_id}'.")
    if is_following:
        for line in follow(log, position, turn_id):
            _show(line, as_json)


def _show(line: str, as_json: bool) -> None:
    if as_json:
        print_json({"line": line})
    else:
        print(escaped(line) if is_terminal(sys.stdout) else line, flush=True)
