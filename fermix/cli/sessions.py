"""`fermix sessions`: the conversations of this machine's command line."""

from __future__ import annotations

import difflib
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from fermix.cli.completing import session_names
from fermix.cli.door import Door
from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.terminal import is_terminal, one_line
from fermix.cli.transcript import message_lines, moment
from fermix.cli.waiting import Waiting, patiently
from fermix.errors import OwnerError, UsageError
from fermix.ipc.client import Connection

_TIMEOUT_S = 10.0


@click.group(
    cls=Group,
    epilog=examples("fermix sessions list", "fermix sessions show main", "fermix sessions resume main"),
)
def group() -> None:
    """List, read, keep and delete conversations."""


@group.command("list", epilog=examples("fermix sessions list", "fermix sessions list --limit 100 --json"))
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=1000),
    default=20,
    show_default=True,
    help="Most sessions to list.",
)
@click.option("--archived", "is_archived", is_flag=True, help="Those that were put away instead.")
@json_option
def list_sessions(limit: int, is_archived: bool, as_json: bool) -> None:
    """List conversations, the last used first."""
    asked: dict[str, Any] = {"limit": limit} | ({"is_archived": True} if is_archived else {})
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        answer = connection.call("sessions.list", asked, _TIMEOUT_S)
    if as_json:
        print_json(answer)
        return
    sessions = answer.get("sessions") or []
    if not sessions and is_archived:
        print("No conversation was put away.")
    elif not sessions:
        print('No conversations yet. Begin one with: fermix ask "Say hello"')
    width = max((len(_name(each)) for each in sessions), default=0)
    for each in sessions:
        print(_row(each, width))


@group.command("show", epilog=examples("fermix sessions show main", "fermix sessions show work --limit 5"))
@click.argument("name", metavar="NAME", shell_complete=session_names)
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=200),
    default=50,
    show_default=True,
    help="Most messages to show.",
)
@json_option
def show(name: str, limit: int, as_json: bool) -> None:
    """Show the last messages of a conversation."""
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        answer = _messages(connection, name, limit)
    if as_json:
        print_json(answer)
        return
    for each in answer.get("messages") or []:
        print(message_lines(each))


@group.command("resume", epilog=examples("fermix sessions resume main"))
@click.argument("name", metavar="NAME", shell_complete=session_names)
def resume(name: str) -> int:
    """Go on with a conversation in a chat."""
    from fermix.cli.chat import chat  # only this command needs it

    with Door(own_home(), starts_private=True).open() as connection:
        _messages(connection, name, 1)
    return chat(own_home(), name)


@group.command("title", epilog=examples('fermix sessions title main "Everyday things"'))
@click.argument("name", metavar="NAME", shell_complete=session_names)
@click.argument("title", metavar="TITLE")
@json_option
def retitle(name: str, title: str, as_json: bool) -> None:
    """Give a conversation a title; "" takes the title away."""
    answer = _ask("sessions.title", {"session": name, "title": title}, as_json)
    if as_json:
        print_json(answer)
    else:
        print(f"{_name(answer)}: {one_line(str(answer.get('title') or ''), 200)}")


@group.command(epilog=examples("fermix sessions archive work", "fermix sessions archive work --undo"))
@click.argument("name", metavar="NAME", shell_complete=session_names)
@click.option("--undo", "is_undone", is_flag=True, help="Take it back.")
@json_option
def archive(name: str, is_undone: bool, as_json: bool) -> None:
    """Put a conversation away: kept, and not listed any more.

    Saying something in it takes it back.
    """
    answer = _ask("sessions.archive", {"session": name, "is_archived": not is_undone}, as_json)
    if as_json:
        print_json(answer)
    elif is_undone:
        print(f"{_name(answer)} is in the list again.")
    else:
        undo = f"fermix sessions archive {shlex.quote(_name(answer))} --undo"
        print(f"{_name(answer)} is put away; back with: {undo}")


@group.command(
    epilog=examples(
        "fermix sessions export main --out main.json",
        "fermix sessions export main --format markdown | less",
    )
)
@click.argument("name", metavar="NAME", shell_complete=session_names)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="How it is written.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    default="-",
    help="File to write (only you may read it); - is stdout.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
def export(name: str, kind: str, out: str, force: bool, as_json: bool) -> None:
    """Write a whole conversation out: words, tool calls and their results."""
    from fermix.cli.session_export import export_session  # only this command needs it

    if out != "-" and not force and Path(out).exists():
        again = f"fermix sessions export {shlex.quote(name)} --out {shlex.quote(out)} --force"
        raise UsageError(f"{out!r} is there already; nothing was written.", hint=again)
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        count = export_session(connection, name, kind=kind, out=out, is_silent=as_json)
    if out == "-":
        return
    if as_json:
        print_json({"session": name, "path": str(Path(out).absolute()), "messages": count})
    else:
        print(f"{count} messages are in {out}")


@group.command(epilog=examples("fermix sessions delete old", "fermix sessions delete old --yes"))
@click.argument("name", metavar="NAME", shell_complete=session_names)
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@json_option
def delete(name: str, is_sure: bool, as_json: bool) -> None:
    """Delete a conversation for good, with the files that were sent in it.

    What runs in it is stopped. Its words are wiped from the files of the home; nothing brings them back.
    """
    if not is_sure and (as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr))):
        raise UsageError(
            "Nobody can be asked here whether the conversation may be deleted.",
            hint=f"fermix sessions delete {shlex.quote(name)} --yes",
        )
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        if not is_sure:
            found = connection.call("sessions.get", {"session": name}, _TIMEOUT_S)
            about = one_line(str(found.get("title") or ""), 60)
            counted = f"{found.get('message_count') or 0} messages"
            click.confirm(f"Delete {_name(found)} ({counted}; {about}) for good?", abort=True, err=True)
        with Waiting(f"deleting {one_line(name, 40)}", is_silent=as_json) as waiting:
            answer = patiently(connection, "sessions.delete", {"session": name}, waiting=waiting)
    if as_json:
        print_json(answer)
        return
    files = answer.get("files") or 0
    also = f" and {files} file{'s' * (files != 1)}" if files else ""
    print(f"Deleted {_name(answer)}: {answer.get('messages') or 0} messages{also}.")


def _ask(method: str, params: dict[str, Any], is_silent: bool) -> dict[str, Any]:
    with Door(own_home(), starts_private=True, is_silent=is_silent).open() as connection:
        return connection.call(method, params, _TIMEOUT_S)


def _messages(connection: Connection, name: str, limit: int) -> dict[str, Any]:
    """The last messages of a session.

    Raises: OwnerError (`session_unknown`) with the nearest name when there are none.
    """
    answer = connection.call("sessions.messages", {"session": name, "limit": limit}, _TIMEOUT_S)
    if answer.get("messages"):
        return answer
    known = connection.call("sessions.list", {"limit": 100}, _TIMEOUT_S).get("sessions") or []
    nearest = difflib.get_close_matches(name, [str(each.get("session")) for each in known], n=1)
    asked = f" Did you mean {nearest[0]!r}?" if nearest else ""
    told = OwnerError(f"No session named {name!r}.{asked}", hint="fermix sessions list")
    told.code = "session_unknown"
    raise told


def _name(session: dict[str, Any]) -> str:
    return one_line(str(session.get("session") or "?"), 40)


def _row(session: dict[str, Any], width: int) -> str:
    count = session.get("message_count") or 0
    about = one_line(str(session.get("title") or session.get("last_text") or ""), 60)
    when = moment(session.get("updated_ms"))
    return f"{_name(session):<{width}}  {when}  {count:>4} messages  {about}".rstrip()
