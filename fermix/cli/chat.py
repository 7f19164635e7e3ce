"""`fermix chat`: a conversation, line by line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime

import click

from fermix.cli.ask import AskView
from fermix.cli.completing import session_names
from fermix.cli.door import Door
from fermix.cli.options import examples, model_options, own_home
from fermix.cli.talk import LEAVING, Talk
from fermix.cli.terminal import has_cursor, is_terminal
from fermix.errors import FermixError, OwnerError, UsageError
from fermix.paths import Home


@click.command(epilog=examples("fermix chat", "fermix chat --session work", "fermix chat --new"))
@click.option(
    "--session",
    metavar="NAME",
    shell_complete=session_names,
    help="The conversation to go on with (main).",
)
@click.option("--new", "is_new", is_flag=True, help="Begin a conversation of its own.")
@model_options
def command(session: str | None, is_new: bool, model: str | None, effort: str | None) -> None:
    """Talk with fermix.

    Enter sends, Alt-Enter begins a new line, Ctrl-C stops the answer, Ctrl-D leaves. Without a
    terminal every line of standard input is a message.
    """
    if is_new and session is not None:
        raise UsageError("--new and --session exclude each other.", hint="fermix chat --help")
    # The process id tells chats apart that begin in the same second.
    own = f"chat-{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}"
    chosen = own if is_new else session or "main"
    chat(own_home(), chosen, model=model, effort=effort)


def chat(home: Home, session: str, *, model: str | None = None, effort: str | None = None) -> None:
    """Talk in `session` until the person leaves; without a model the settings name it."""
    talk = Talk(Door(home, starts_private=True), session, model=model, effort=effort)
    if is_terminal(sys.stdin) and has_cursor(sys.stdout):
        from fermix.cli.chat_screen import chat_on_screen  # rich and prompt_toolkit are slow to import

        chat_on_screen(home, talk)
    else:
        _chat_in_lines(talk)


def _chat_in_lines(talk: Talk) -> None:
    """Without a terminal: every line is a message, answers are plain text.

    Raises: OwnerError when the last turn did not complete, so that a script notices.
    """
    failed: FermixError | None = None
    for line in _lines():
        if line in LEAVING:
            break
        try:
            failed = None
            talk.send(line, AskView())
        except OwnerError as error:
            failed = error
            print(f"fermix: {error.message}", file=sys.stderr, flush=True)
    if failed is not None:
        raise failed


def _lines() -> Iterator[str]:
    """Lines of standard input that are not blank, as they come."""
    is_asking = is_terminal(sys.stdin)
    while True:
        if is_asking:
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = sys.stdin.buffer.readline()
        if not line:
            return
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield text
