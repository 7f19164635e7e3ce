"""`fermix logs`: the end of the log, what comes next, and the entries somebody looks for."""

from __future__ import annotations

import sys

import click

from fermix.cli.log_file import tail_position
from fermix.cli.log_records import LEVELS, Entry, Wanted, following_entries, last_entries, moment_before
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.terminal import escaped, is_terminal, say
from fermix.errors import OwnerError, UsageError

SHOWN = 50
LONGEST_TEXT = 1000


@click.command(
    epilog=examples(
        "fermix logs -f",
        "fermix logs --level warning --since 2h",
        'fermix logs --grep "not answer" -n 200',
        "fermix logs --turn 01J… --json",
    )
)
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(min=0),
    default=None,
    help=f"Entries to show; {SHOWN} when nothing says otherwise.",
)
@click.option(
    "-f", "--follow", "is_following", is_flag=True, help="Go on with what comes next; Ctrl-C ends it."
)
@click.option("--turn", "turn_id", metavar="ID", help="Only what one turn did.")
@click.option("--level", type=click.Choice(LEVELS), help="Only what is at least as bad as this.")
@click.option("--grep", "text", metavar="TEXT", help="Only entries with this text, in capitals or not.")
@click.option("--since", "span", metavar="SPAN", help="Only what is younger than 30s, 10m, 2h or 3d.")
@json_option
def command(
    count: int | None,
    is_following: bool,
    turn_id: str | None,
    level: str | None,
    text: str | None,
    span: str | None,
    as_json: bool,
) -> None:
    """Show the daemon's log.

    A stack or traceback stays with the line it belongs to. With --json each entry is an object of its
    own: {"time", "level", "logger", "pid", "turn", "text"}.
    """
    wanted = Wanted(turn=turn_id, level=level, text=_searched(text), since=_moment(span))
    log = own_home().log
    position = tail_position(log)
    most = SHOWN if count is None and span is None else count
    try:
        shown = last_entries(log, most, wanted, end=position)
    except FileNotFoundError as exc:
        if not is_following:
            raise OwnerError(f"Nothing was logged yet in '{log}'.", hint="fermix start") from exc
        shown = []
    for entry in shown:
        _show(entry, as_json)
    if not shown and not as_json and wanted != Wanted():
        say(
            f"No line of the log names the turn '{turn_id}'."
            if turn_id
            else "Nothing of that is in the log."
        )
    if is_following:
        for entry in following_entries(log, position, wanted):
            _show(entry, as_json)


def _searched(text: str | None) -> str | None:
    if text is not None and len(text) > LONGEST_TEXT:
        raise UsageError(f"--grep takes at most {LONGEST_TEXT} characters; these are {len(text)}.")
    return text or None


def _moment(span: str | None) -> str | None:
    if span is None:
        return None
    moment = moment_before(span)
    if moment is None:
        raise UsageError(f"{span[:40]!r} is no span of time; expected one like 30s, 10m, 2h or 3d.")
    return moment


def _show(entry: Entry, as_json: bool) -> None:
    if as_json:
        print_json(entry.facts())
    else:
        told = "\n".join(entry.lines)
        print(escaped(told) if is_terminal(sys.stdout) else told, flush=True)
