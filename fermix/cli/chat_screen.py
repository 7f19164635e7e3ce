"""A chat on a terminal: a prompt below, rendered answers above."""

from __future__ import annotations

import contextlib
import shutil
import sys
import termios
from collections.abc import Iterator

from fermix import __version__
from fermix.cli.activity import phase_words
from fermix.cli.ask import AskView
from fermix.cli.chat_prompt import ChatPrompt
from fermix.cli.failure import Failure, show_failure
from fermix.cli.markdown_stream import MarkdownStream
from fermix.cli.talk import LEAVING, Talk
from fermix.cli.terminal import one_line, say
from fermix.cli.transcript import message_lines
from fermix.cli.waiting import Waiting
from fermix.errors import FermixError
from fermix.ipc.client import Event
from fermix.paths import Home

_HELP = """\
Enter        send
Alt-Enter    begin a new line; pasted lines stay together
Up, Down     what you typed before
Ctrl-C       stop the answer; twice leaves
Ctrl-D       leave, like /quit"""


def chat_on_screen(home: Home, talk: Talk) -> None:
    """Talk until Ctrl-D.

    Raises: KeyboardInterrupt at a second Ctrl-C in a row.
    """
    earlier = talk.earlier()
    say(f"fermix {__version__} · {talk.session} · /help shows the keys")
    for message in earlier:
        print(message_lines(message))
    prompt = ChatPrompt(home.chat_history)
    with _keys_kept():
        _converse(talk, prompt)


def _converse(talk: Talk, prompt: ChatPrompt) -> None:
    was_interrupted = False
    while True:
        try:
            text = prompt.ask().strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            if was_interrupted:
                raise
            was_interrupted = True
            say("Ctrl-D leaves, and so does another Ctrl-C.")
            continue
        was_interrupted = False
        if text in LEAVING:
            return
        if text == "/help":
            say(_HELP)
        if text:
            _take_turn(talk, text)


def _take_turn(talk: Talk, text: str) -> None:
    """One message and its answer; a failure is shown and the chat goes on.

    Raises: KeyboardInterrupt at the second Ctrl-C.
    """
    try:
        if not talk.send(text, ScreenView()):
            say("stopped")
    except FermixError as error:
        show_failure(Failure.of(error), as_json=False)
    print()


class ScreenView(AskView):
    """Rendered Markdown with a spinner below it while nothing comes."""

    def __init__(self) -> None:
        super().__init__()
        self._markdown = MarkdownStream(sys.stdout)
        self._waiting = Waiting("thinking", quiet_s=0.3)

    def show(self, event: Event) -> None:
        if event.name == "phase_change":
            self._waiting.what = phase_words(str(event.data.get("phase") or ""))
        elif event.name == "tool_call_start":
            self._waiting.restart(one_line(str(event.data.get("name") or "tool"), 40))
        super().show(event)

    def tick(self, is_connected: bool) -> None:
        if not is_connected:
            self._waiting.what = "waiting for the daemon to come back"
        if not self._markdown.is_line_open:
            self._waiting.tick()

    def close(self) -> None:
        self._waiting.clear()
        self._markdown.flush()

    def _write(self, text: str) -> None:
        self._waiting.clear()
        self._markdown.write(text)
        self._waiting.restart(self._waiting.what)

    def _say(self, text: str) -> None:
        self._waiting.clear()
        self._markdown.flush()
        self._has_spoken = True
        say(one_line(text, shutil.get_terminal_size().columns - 1) if "\n" not in text else text)


@contextlib.contextmanager
def _keys_kept() -> Iterator[None]:
    """Keys pressed while an answer comes wait for the next prompt instead of standing in the answer.

    For the whole chat and not for each answer: a terminal that reads by line, if only for a moment,
    takes a Ctrl-D for the end of one and forgets it.
    """
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
