"""`fermix ask`: one message, its answer streamed, then back to the shell."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from fermix.cli.activity import plan_lines, tool_line
from fermix.cli.completing import session_names
from fermix.cli.door import Door
from fermix.cli.launch import START_TIMEOUT_S
from fermix.cli.options import examples, json_option, model_options, own_home, print_json
from fermix.cli.outgoing import joined_text, message, read_piped, upload
from fermix.cli.reply import ReplyText
from fermix.cli.terminal import escaped, is_one_place, is_terminal, say
from fermix.cli.turn import PATIENCE_S, Interrupts, answer_of, check_completed, follow
from fermix.cli.waiting import Waiting
from fermix.errors import FermixError, UsageError
from fermix.ipc.client import Event
from fermix.ipc.following import TurnWatch


@click.command(
    epilog=examples(
        'fermix ask "Say hello"',
        "git diff | fermix ask --stdin Review this change",
        "fermix ask --attach photo.jpg What is this?",
        "fermix ask --model openai/gpt-5 --effort high Think about this",
        "fermix ask --session work --timeout 60 --json Any news?",
    )
)
@click.argument("words", nargs=-1, metavar="TEXT...")
@click.option(
    "--session",
    metavar="NAME",
    shell_complete=session_names,
    help="The conversation to go on with (main).",
)
@click.option("--stdin", "is_piped", is_flag=True, help="Add what is piped in to the message.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Cancel the turn when it takes longer.",
)
@click.option(
    "--attach",
    "files",
    multiple=True,
    metavar="FILE",
    help="Send a file along; may be repeated.",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
)
@model_options
@json_option
def command(
    words: tuple[str, ...],
    session: str | None,
    is_piped: bool,
    timeout_s: float | None,
    files: tuple[Path, ...],
    model: str | None,
    effort: str | None,
    as_json: bool,
) -> None:
    """Ask one thing; the answer is printed as it comes."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    text = joined_text(words, read_piped(sys.stdin.buffer) if is_piped else None)
    if not text:
        raise UsageError("There is no text to send.", hint='fermix ask "Say hello"')
    patience_s = START_TIMEOUT_S if timeout_s is None else min(timeout_s, START_TIMEOUT_S)
    door = Door(own_home(), starts_private=True, is_silent=as_json, patience_s=patience_s)
    with door.open() as connection:  # outside of `Interrupts`: a Ctrl-C ends a start at once
        attachments = [upload(connection, path, is_silent=as_json) for path in files]
    params = message(text, session, attachments, model=model, effort=effort)
    watch = TurnWatch(door.open, params, patience_s=PATIENCE_S)
    view = AskView(is_silent=as_json)
    with contextlib.closing(watch), Interrupts() as interrupts:
        try:
            result = follow(watch, view, interrupts, deadline=deadline, timeout_s=timeout_s)
        except BaseException:
            view.close()
            raise
        if interrupts.count:
            view.close()
            raise KeyboardInterrupt
        if as_json:
            check_completed(result)
            print_json(result)
        else:
            view.finish(result)
        acknowledge(watch)
        check_completed(result)


def acknowledge(watch: TurnWatch) -> None:
    """Tell that the reply was written; harmless when the daemon is gone."""
    with contextlib.suppress(FermixError):
        watch.acknowledge()


class AskView:
    """Text to stdout as it comes; what is done meanwhile as quiet lines on stderr."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self._is_silent = is_silent
        self._reply = ReplyText()
        self._tellings = 1
        self._is_safe = not is_terminal(sys.stdout)
        self._shows_activity = is_terminal(sys.stderr) and not is_silent
        self._is_line_open = False
        self._has_spoken = False
        self._waiting = Waiting("thinking", is_silent=not self._shows_activity)

    def show(self, event: Event) -> None:
        if self._is_silent:
            return
        text = str(event.data.get("text") or "")
        if event.name == "text_delta":
            self._add(self._reply.delta(text))
        elif event.name == "restarted":
            self._reply.restarted()
        elif event.name == "correction":
            self._reply.step_ended()
            self._add(self._reply.delta(text))
        elif event.name == "notice":
            self._say(text)
        elif event.name == "plan" and self._shows_activity:
            self._say(plan_lines(event, shutil.get_terminal_size().columns - 1))
        elif event.name.startswith("tool_"):
            self._reply.step_ended()
            line = tool_line(event, shutil.get_terminal_size().columns - 1)
            if self._shows_activity and line:
                self._say(line)

    def tick(self, is_connected: bool) -> None:
        if self._is_line_open and is_terminal(sys.stdout):
            return  # a spinner would run over the text
        what = "thinking" if is_connected else "waiting for the daemon to come back"
        if what != self._waiting.what:
            self._waiting.restart(what)
        self._waiting.tick()

    def finish(self, result: dict[str, Any]) -> None:
        """Write what of the reply is not written yet, and end its line."""
        self._add(self._reply.finish(answer_of(result)))
        self.close()
        sys.stdout.flush()

    def close(self) -> None:
        """Leave the terminal at the start of a line."""
        self._waiting.clear()
        if self._is_line_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._is_line_open = False

    def _add(self, text: str) -> None:
        if self._reply.tellings > self._tellings:
            self._tellings = self._reply.tellings
            self._say("(the answer was cut off and begins again)")
        if self._has_spoken:  # a line of ours already parts the paragraphs
            text = text.lstrip("\n")
        if text:
            self._has_spoken = False
            self._write(text)

    def _write(self, text: str) -> None:
        self._waiting.clear()
        sys.stdout.write(text if self._is_safe else escaped(text))
        sys.stdout.flush()
        self._is_line_open = not text.endswith("\n")

    def _say(self, text: str) -> None:
        self._waiting.clear()
        if not self._is_safe or is_one_place(sys.stdout, sys.stderr):
            self.close()
            self._has_spoken = True
        say(text)
