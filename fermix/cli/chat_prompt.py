"""Where a person types: one prompt with history, several lines, and keys that do what people expect."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.vt100 import Vt100_Output

from fermix.cli.terminal import say, takes


class ChatPrompt:
    """Asks for the next message."""

    def __init__(self, history: Path) -> None:
        self._mark = "› " if takes(sys.stdout, "›") else "> "
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation=lambda width, _line, _wrapped: " " * width,
            enable_suspend=True,
            # Without asking the terminal where its cursor is: not every one answers, and a plain
            # prompt has no menu that would need to know.
            output=Vt100_Output(sys.stdout, _size, term=os.environ.get("TERM"), enable_cpr=False),
        )

    def ask(self) -> str:
        """What the person typed.

        Raises: EOFError at Ctrl-D, KeyboardInterrupt at Ctrl-C.
        """
        return self._session.prompt(FormattedText([("bold", self._mark)]))


def _size() -> Size:
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, rows = 0, 0
    return Size(rows=rows or 24, columns=columns or 80)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("escape", "c-j")  # pressed while an answer came, Enter arrives as a new line
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _history(path: Path) -> History:
    """What was typed before, in a file only its owner can read; kept in memory where that fails."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as exc:
        say(f"fermix: the history '{path}' cannot be written ({exc.strerror})")
        return InMemoryHistory()
    return FileHistory(path)
