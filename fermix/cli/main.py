"""The table of commands, and the way from a command line to an exit status."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from fermix.cli.failure import Failure, exit_status, show_failure
from fermix.cli.options import Group, examples
from fermix.cli.terminal import hush_output, prepare_output

COMMANDS = {
    "ask": "fermix.cli.ask:command",
    "chat": "fermix.cli.chat:command",
    "config": "fermix.cli.config:group",
    "help": "fermix.cli.help:command",
    "logs": "fermix.cli.logs:command",
    "models": "fermix.cli.models:group",
    "restart": "fermix.cli.lifecycle:restart",
    "run": "fermix.cli.run:command",
    "sessions": "fermix.cli.sessions:group",
    "start": "fermix.cli.lifecycle:start",
    "status": "fermix.cli.status:command",
    "stop": "fermix.cli.lifecycle:stop",
    "version": "fermix.cli.version:command",
}
"""Every command and where it is; a module is imported when its command is named."""

BROKEN_PIPE_STATUS = 141
"""What a shell sees of a program that a closed pipe ended (128 + SIGPIPE)."""
INTERRUPTED_STATUS = 130


class LazyGroup(Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{place} is not a command")
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples("fermix chat", 'fermix ask "What is in this folder?"', "fermix help ask"),
)
@click.option(
    "--version",
    "-V",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    help="Print the version.",
    callback=lambda ctx, _param, value: _print_version(ctx, value),
)
def root() -> None:
    """A personal AI agent on your own machine."""


def _print_version(ctx: click.Context, is_asked: bool) -> None:
    if is_asked:
        from fermix import __version__

        click.echo(f"fermix {__version__}")
        ctx.exit(0)


def main(arguments: Sequence[str]) -> int:
    """Run one command line; its exit status.

    Contract: prints what went wrong as one line and a hint, never a stack trace.
    """
    prepare_output()
    words = list(arguments)
    try:
        status = root.main(words, prog_name="fermix", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.NoArgsIsHelpError as shown:
        click.echo(shown.message)
        return 0
    except (KeyboardInterrupt, click.Abort):
        hush_output()
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        hush_output()
        return BROKEN_PIPE_STATUS
    except Exception as exc:  # the process boundary: whatever it is, a person reads one line
        if os.environ.get("FERMIX_TRACE"):
            raise
        return _fail(exc, "--json" in words[: words.index("--") if "--" in words else None])


def _fail(exc: Exception, as_json: bool) -> int:
    failure = Failure.of(exc)
    try:
        show_failure(failure, as_json=as_json)
    except OSError:  # nobody reads any more
        hush_output()
    return exit_status(failure)
