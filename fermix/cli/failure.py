"""How a failed command looks: one line, a hint, a stable code."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import click

from fermix.cli.terminal import escaped, is_terminal, paint
from fermix.errors import FermixError


@dataclass(frozen=True, slots=True)
class Failure:
    """What a person, or a program that asked for JSON, is told."""

    code: str
    message: str
    hint: str | None
    """The command that repairs it; None when there is none."""
    status: int

    @staticmethod
    def of(exc: Exception) -> Failure:
        """The failure behind any exception that reached the command line."""
        if isinstance(exc, FermixError):
            return Failure(exc.code, exc.message, exc.hint, exc.exit_status)
        if isinstance(exc, click.ClickException):
            path = exc.ctx.command_path if isinstance(exc, click.UsageError) and exc.ctx else "fermix"
            return Failure("usage", _sentence(exc.format_message()), f"{path} --help", 2)
        if isinstance(exc, OSError):
            name = f" '{exc.filename}'" if exc.filename is not None else ""
            return Failure("system", f"The system refused{name}: {exc.strerror or exc}.", None, 1)
        told = f"Something in fermix itself went wrong: {type(exc).__name__}: {exc}"
        return Failure("internal", told, "run it again with FERMIX_TRACE=1 to see where", 1)


def show_failure(failure: Failure, *, as_json: bool) -> None:
    """Print it: JSON on stdout, words on stderr."""
    if as_json:
        told = {"code": failure.code, "message": failure.message, "hint": failure.hint}
        print(json.dumps({"error": told}, ensure_ascii=False), flush=True)
        return
    message, hint = failure.message, failure.hint
    if is_terminal(sys.stderr):
        message, hint = escaped(message), escaped(hint or "")
    print(paint("fermix:", "red", sys.stderr), message, file=sys.stderr)
    if hint:
        print(paint(f"  try: {hint}", "dim", sys.stderr), file=sys.stderr, flush=True)


def exit_status(failure: Failure) -> int:
    """0 ok, 1 failed, 2 usage, 3 not running."""
    return {"usage": 2, "not_running": 3}.get(failure.code, failure.status)


def _sentence(message: str) -> str:
    text = " ".join(message.split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
