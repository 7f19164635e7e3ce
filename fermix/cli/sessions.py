"""`fermix sessions`: the conversations of this machine's command line."""

from __future__ import annotations

import difflib
from typing import Any

import click

from fermix.cli.door import Door
from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.terminal import one_line
from fermix.cli.transcript import message_lines, moment
from fermix.errors import OwnerError
from fermix.ipc.client import Connection

_TIMEOUT_S = 10.0


@click.group(
    cls=Group,
    epilog=examples("fermix sessions list", "fermix sessions show main", "fermix sessions resume main"),
)
def group() -> None:
    """List, read and go on with conversations."""


@group.command("list", epilog=examples("fermix sessions list", "fermix sessions list --limit 100 --json"))
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=1000),
    default=20,
    show_default=True,
    help="Most sessions to list.",
)
@json_option
def list_sessions(limit: int, as_json: bool) -> None:
    """List conversations, the last used first."""
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        answer = connection.call("sessions.list", {"limit": limit}, _TIMEOUT_S)
    if as_json:
        print_json(answer)
        return
    sessions = answer.get("sessions") or []
    if not sessions:
        print('No conversations yet. Begin one with: fermix ask "Say hello"')
    width = max((len(_name(each)) for each in sessions), default=0)
    for each in sessions:
        print(_row(each, width))


@group.command("show", epilog=examples("fermix sessions show main", "fermix sessions show work --limit 5"))
@click.argument("name", metavar="NAME")
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
@click.argument("name", metavar="NAME")
def resume(name: str) -> None:
    """Go on with a conversation in a chat."""
    from fermix.cli.chat import chat  # only this command needs it

    with Door(own_home(), starts_private=True).open() as connection:
        _messages(connection, name, 1)
    chat(own_home(), name)


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
