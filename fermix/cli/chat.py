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
from fermix.cli.failure import Failure, show_failure
from fermix.cli.options import examples, model_options, own_home
from fermix.cli.talk import LEAVING, Talk
from fermix.cli.terminal import has_cursor, is_terminal
from fermix.errors import FermixError, OwnerError, UsageError
from fermix.paths import Home


@click.command(
    epilog=examples(
        "fermix chat",
        "fermix chat --session work",
        "fermix chat --new --model openai/gpt-5 --effort high",
    )
)
@click.option(
    "--session",
    metavar="NAME",
    shell_complete=session_names,
    help="The conversation to go on with (main).",
)
@click.option("--new", "is_new", is_flag=True, help="Begin a conversation of its own.")
@model_options
def command(session: str | None, is_new: bool, model: str | None, effort: str | None) -> int:
    """Talk with fermix.

    Enter sends, Alt-Enter begins a new line, Ctrl-C stops the answer, Ctrl-D leaves. Without a
    terminal every line of standard input is a message.
    """
    if is_new and session is not None:
        raise UsageError("--new and --session exclude each other.", hint="fermix chat --help")
    # The process id tells chats apart that begin in the same second.
    own = f"chat-{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}"
    chosen = own if is_new else session or "main"
    return chat(own_home(), chosen, model=model, effort=effort)


def chat(home: Home, session: str, *, model: str | None = None, effort: str | None = None) -> int:
    """Talk in `session` until the person leaves, the exit status; without a model the settings name it."""
    talk = Talk(Door(home, starts_private=True), session, model=model, effort=effort)
    if is_terminal(sys.stdin) and has_cursor(sys.stdout):
        from fermix.cli.chat_screen import chat_on_screen  # rich and prompt_toolkit are slow to import

        chat_on_screen(home, talk)
    else:
        return _chat_in_lines(talk)
    return 0


def _chat_in_lines(talk: Talk) -> int:
    """Without a terminal: every line is a message, answers are plain text.

    The exit status is that of the last turn, so that a script notices when it did not complete.
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
            show_failure(Failure.of(error), as_json=False)
    return failed.exit_status if failed is not None else 0


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
