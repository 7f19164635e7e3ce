"""Slash commands: words to the gateway itself, answered at once and without a model."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fermix.messages import ConversationKey
from fermix.trust import Standing, Trust


class Turns(Protocol):
    """What commands may do to turns."""

    def cancel(self, key: ConversationKey | None, reason: str) -> int:
        """Stop the running turn of one conversation, or of all; how many were told to stop."""
        ...

    def make_room(self, key: ConversationKey) -> None:
        """Sum up the older part of a conversation before its next question to a model."""
        ...


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A slash command as it was sent."""

    argument: str
    key: ConversationKey
    standing: Standing
    turns: Turns
    tell_usage: Callable[[ConversationKey | None], str]
    """What one conversation took of models, or with None everything, in Markdown."""


def _help(call: CommandCall) -> str:
    """What can be typed here."""
    lines = [f"- `/{name}`: {_describe(command)}" for name, command in COMMANDS.items()]
    return "\n".join(["Commands:", "", *lines, "", "Anything else is a message to the agent."])


def _whoami(call: CommandCall) -> str:
    """Who you are to fermix in this conversation."""
    attended = "attended" if call.standing.attended else "unattended"
    role = call.standing.trust.name.lower()
    return (
        f"You are the {role} ({attended}) on channel {call.key.channel}, conversation {call.key.chat_id}."
    )


def _stop(call: CommandCall) -> str:
    """Stop the running answer here; `/stop all` stops every conversation's (operator only)."""
    if call.argument == "all":
        if call.standing.trust is not Trust.OPERATOR:
            return "Only the operator may stop every conversation."
        count = call.turns.cancel(None, "by /stop all")
    elif call.argument:
        return f"/stop takes nothing or `all`, not {call.argument!r}."
    else:
        count = call.turns.cancel(call.key, "by /stop")
    return "Nothing was running." if count == 0 else f"Stopped {count} running turn{'s' * (count > 1)}."


def _usage(call: CommandCall) -> str:
    """Tokens and cost of this conversation; `/usage all` of everything (operator only)."""
    if call.argument == "all":
        if call.standing.trust is not Trust.OPERATOR:
            return "Only the operator may see what everything took."
        return call.tell_usage(None)
    if call.argument:
        return f"/usage takes nothing or `all`, not {call.argument!r}."
    return call.tell_usage(call.key)


def _compact(call: CommandCall) -> str:
    """Sum up the older part of this conversation, so that its requests become shorter."""
    call.turns.make_room(call.key)
    return "The older part of this conversation is summed up before the next answer; nothing is deleted."


def _steer(call: CommandCall) -> str:
    """Add words to the answer that is on its way here: `/steer TEXT`."""
    return "Say what the running answer should know or do: /steer TEXT"


LIKENESS = 0.7
"""From here a word is a mistyped command; `/home` and the other folders of a root are below it."""
COMMANDS: dict[str, Callable[[CommandCall], str]] = {
    "compact": _compact,
    "help": _help,
    "steer": _steer,
    "stop": _stop,
    "usage": _usage,
    "whoami": _whoami,
}


def parse(text: str) -> tuple[str, str] | None:
    """Command name and argument; None when the text is for the agent.

    A text that starts with a slash but is no command, such as a path, is for the agent, unless
    it looks like a mistyped command.
    """
    if not text.startswith("/"):
        return None
    word, *rest = text[1:].split(maxsplit=1) or [""]
    name = word.lower()  # telephones like to begin with a capital
    if name in COMMANDS or (name.isalpha() and difflib.get_close_matches(name, COMMANDS, 1, LIKENESS)):
        return name, rest[0].strip() if rest else ""
    return None


def run(name: str, call: CommandCall) -> str:
    """The command's answer."""
    command = COMMANDS.get(name)
    if command is None:
        close = difflib.get_close_matches(name, COMMANDS, 1)
        return f"No command /{name}. Did you mean /{close[0]}? Type /help for all."
    return command(call)


def _describe(command: Callable[[CommandCall], str]) -> str:
    return (command.__doc__ or "").strip()
