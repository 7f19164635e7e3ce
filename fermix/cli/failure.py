"""How a failed command looks: one line, a hint, a stable code."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

from fermix.cli.terminal import escaped, hush_output, is_terminal, paint, prepare_streams, print_json
from fermix.errors import FermixError

BROKEN_PIPE_STATUS = 141
"""What a shell sees of a program that a closed pipe ended (128 + SIGPIPE)."""
INTERRUPTED_STATUS = 130


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
        if isinstance(exc, OSError):
            name = f" '{exc.filename}'" if exc.filename is not None else ""
            return Failure("system", f"The system refused{name}: {exc.strerror or exc}.", None, 1)
        told = f"Something in fermix itself went wrong: {type(exc).__name__}: {exc}"
        return Failure("internal", told, "run it again with FERMIX_TRACE=1 to see where", 1)


def show_failure(failure: Failure, *, as_json: bool) -> None:
    """Print it: JSON on stdout, words on stderr."""
    if as_json:
        told = {"code": failure.code, "message": failure.message, "hint": failure.hint}
        print_json({"error": told})
        return
    message, hint = failure.message, failure.hint
    if is_terminal(sys.stderr):
        message, hint = escaped(message), escaped(hint or "")
    print(paint("fermix:", "red", sys.stderr), message, file=sys.stderr)
    if hint:
        print(paint(f"  try: {hint}", "dim", sys.stderr), file=sys.stderr, flush=True)


def run_verb(verb: Callable[[], int | None], *, as_json: bool) -> int:
    """Do what a command line asks; its exit status.

    Contract: prints what went wrong as one line and a hint, never a stack trace.
    """
    prepare_streams()
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # the binary's, while it loads
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = verb()
        sys.stdout.flush()
        return status or 0
    except KeyboardInterrupt:
        hush_output()
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        hush_output()
        return BROKEN_PIPE_STATUS
    except Exception as exc:  # the process boundary: whatever it is, a person reads one line
        if os.environ.get("FERMIX_TRACE"):
            raise
        failure = Failure.of(exc)
    with contextlib.suppress(OSError):  # nobody reads any more
        show_failure(failure, as_json=as_json)
    hush_output()
    return failure.status
