"""The table of commands, and the way from a command line to an exit status."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fermix.cli.failure import run_verb
from fermix.cli.options import Group, examples
from fermix.errors import UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "ask": "fermix.cli.ask:command",
    "auth": "fermix.cli.auth:group",
    "bug-report": "fermix.cli.bug_report:command",
    "chat": "fermix.cli.chat:command",
    "completion": "fermix.cli.completion:command",
    "config": "fermix.cli.config:group",
    "doctor": "fermix.cli.doctor:command",
    "help": "fermix.cli.help:command",
    "logs": "fermix.cli.logs:command",
    "models": "fermix.cli.models:group",
    "prompt-size": "fermix.cli.prompt_size:command",
    "reload": "fermix.cli.reload:command",
    "restart": "fermix.cli.lifecycle:restart",
    "run": "fermix.cli.run:command",
    "secrets": "fermix.cli.secrets:group",
    "service": "fermix.cli.service:group",
    "sessions": "fermix.cli.sessions:group",
    "setup": "fermix.cli.setup:command",
    "start": "fermix.cli.lifecycle:start",
    "status": "fermix.cli.status:command",
    "stop": "fermix.cli.lifecycle:stop",
    "tokens": "fermix.cli.tokens:group",
    "usage": "fermix.cli.usage:command",
    "version": "fermix.cli.version:command",
}
"""Every command and where it is; a module is imported when its command is named."""


class LazyGroup(Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # only while a word is completed

        # The group's own would import every command for its help, while the person waits for a key.
        names = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

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
    epilog=examples(
        "fermix setup", "fermix chat", 'fermix ask "What is in this folder?"', "fermix help ask"
    ),
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
    """Run one command line; its exit status."""
    words = list(arguments)
    is_json_asked = "--json" in words[: words.index("--") if "--" in words else None]
    return run_verb(lambda: _run(words), as_json=is_json_asked)


def _run(words: list[str]) -> int | None:
    """Raises: what fermix raises; what click raises is told in fermix's own classes."""
    try:
        status = root.main(words, prog_name="fermix", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as shown:
        click.echo(shown.message)
        return 0
    except click.Abort as exc:
        raise KeyboardInterrupt from exc
    except click.ClickException as exc:
        raise UsageError(
            _sentence(exc.format_message()), hint=f"{_command_path(exc, words)} --help"
        ) from exc
    return status if isinstance(status, int) else None


def _command_path(exc: click.ClickException, words: list[str]) -> str:
    """The command that was asked for; click forgets it for an option that lacks its value."""
    if isinstance(exc, click.UsageError) and exc.ctx:
        return exc.ctx.command_path
    return f"fermix {words[0]}" if words and words[0] in COMMANDS else "fermix"


_CLICK_WORDS = (
    (re.compile(r"is not a valid float range\b"), "is not a number"),
    (re.compile(r"is not a valid integer range\b"), "is not a whole number"),
    (re.compile(r"\.? \((Did you mean [^()]*\?)\)\.?$"), r". \1"),
)
"""What click says, and how a person says it."""


def _sentence(message: str) -> str:
    text = " ".join(message.split())
    for pattern, words in _CLICK_WORDS:
        text = pattern.sub(words, text)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
