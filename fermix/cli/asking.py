"""Questions to a person at a terminal, in plain lines that every terminal can show."""

from __future__ import annotations

import getpass
import sys

from fermix.cli.terminal import escaped, is_terminal, paint
from fermix.errors import UsageError

SECRET_LIMIT_BYTES = 64 * 1024


def can_ask() -> bool:
    """Whether a person is there to answer."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def ask_line(question: str, default: str = "") -> str:
    """What was typed, without blanks around it; `default` for nothing but Enter.

    Raises: KeyboardInterrupt at Ctrl-C and at the end of input.
    """
    shown = f" [{escaped(default)}]" if default else ""
    sys.stderr.write(f"{paint(question, 'bold', sys.stderr)}{shown}: ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        raise KeyboardInterrupt
    return line.strip() or default


def ask_hidden(question: str) -> str:
    """What was typed unseen, without blanks around it; empty for nothing but Enter.

    Raises: KeyboardInterrupt at Ctrl-C and at the end of input.
    """
    try:
        return getpass.getpass(f"{paint(question, 'bold', sys.stderr)}: ", stream=sys.stderr).strip()
    except EOFError as exc:
        sys.stderr.write("\n")
        raise KeyboardInterrupt from exc


def ask_whether(question: str, *, default: bool) -> bool:
    """Yes or no; asks again until it is one of them.

    Raises: KeyboardInterrupt at Ctrl-C and at the end of input.
    """
    while True:
        answer = ask_line(f"{question} [{'Y/n' if default else 'y/N'}]").lower()
        if answer in ("", "y", "yes", "n", "no"):
            return default if not answer else answer.startswith("y")
        sys.stderr.write("Please answer y or n.\n")


def read_secret_from_stdin() -> str:
    """All of standard input, without the line end an `echo` or editor left.

    Raises: UsageError when it is empty, too long or no text.
    """
    return secret_text(sys.stdin.buffer.read(SECRET_LIMIT_BYTES + 1), "Standard input")


def secret_text(raw: bytes, source: str) -> str:
    """A secret as text, without the line end behind it; never shown when it is refused.

    Raises: UsageError when it is empty, too long or no text.
    """
    if len(raw) > SECRET_LIMIT_BYTES:
        raise UsageError(f"{source} holds more than {SECRET_LIMIT_BYTES // 1024} KiB: that is no secret.")
    try:
        text = raw.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise UsageError(f"{source} is not UTF-8 text.") from None  # the error would carry the secret
    if not text.strip():
        raise UsageError(f"{source} is empty; expected the secret.")
    return text
