"""Slash commands: what is one, and who may."""

from __future__ import annotations

import pytest

from fermix.gateway.commands import COMMANDS, CommandCall, parse, run
from fermix.messages import ConversationKey
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Standing, Trust

HERE = ConversationKey("local", "main")


class FakeTurns:
    def __init__(self, running: int) -> None:
        self.running = running
        self.told: list[ConversationKey | None] = []

    def cancel(self, key: ConversationKey | None, reason: str) -> int:
        self.told.append(key)
        return self.running


def answer(text: str, *, standing: Standing = OPERATOR_ATTENDED, turns: FakeTurns | None = None) -> str:
    name, argument = parse(text)
    call = CommandCall(argument, HERE, standing, turns or FakeTurns(0), tell_usage=told_usage)
    return run(name, call)


def told_usage(key: ConversationKey | None) -> str:
    return "everything" if key is None else f"of {key.chat_id}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/help", ("help", "")),
        ("/stop all", ("stop", "all")),
        ("/stop   all  ", ("stop", "all")),
        ("/stop\nall", ("stop", "all")),
        ("/Stop", ("stop", "")),  # a telephone's capital
        ("/STOP all", ("stop", "all")),
        ("/hlep", ("hlep", "")),
        ("/stpo now", ("stpo", "now")),
        ("/etc/hosts has what?", None),
        ("/", None),
        ("/ help", ("help", "")),
        ("//stop", None),
        ("/?", None),
        ("stop", None),
        ("please /stop", None),
        ("", None),
    ],
)
def test_command_is_told_from_a_path_and_from_words(text: str, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "folder",
    [
        "bin",
        "boot",
        "dev",
        "etc",
        "home",
        "lib",
        "media",
        "mnt",
        "opt",
        "proc",
        "root",
        "run",
        "sbin",
        "srv",
        "sys",
        "tmp",
        "usr",
        "var",
    ],
)
def test_folder_of_a_root_is_no_mistyped_command(folder: str) -> None:
    assert parse(f"/{folder} is full") is None


def test_mistyped_command_is_answered_with_the_nearest() -> None:
    assert answer("/hlep") == "No command /hlep. Did you mean /help? Type /help for all."


def test_help_describes_every_command() -> None:
    text = answer("/help")

    for name, command in COMMANDS.items():
        assert command.__doc__ and f"`/{name}`: {command.__doc__.strip()}" in text


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (OPERATOR_ATTENDED, "the operator (attended)"),
        (Standing(Trust.OPERATOR), "the operator (unattended)"),
        (GUEST_ATTENDED, "the guest (attended)"),
    ],
)
def test_whoami_tells_role_and_conversation(standing: Standing, words: str) -> None:
    assert answer("/whoami", standing=standing) == f"You are {words} on channel local, conversation main."


@pytest.mark.parametrize(("running", "said"), [(0, "Nothing was running."), (1, "Stopped 1 running turn.")])
def test_stop_is_for_this_conversation(running: int, said: str) -> None:
    turns = FakeTurns(running)

    assert answer("/stop", standing=GUEST_ATTENDED, turns=turns) == said
    assert turns.told == [HERE]


def test_operator_stops_every_conversation() -> None:
    turns = FakeTurns(3)

    assert answer("/stop all", turns=turns) == "Stopped 3 running turns."
    assert turns.told == [None]


def test_guest_may_not_stop_every_conversation() -> None:
    turns = FakeTurns(3)

    assert answer("/stop all", standing=GUEST_ATTENDED, turns=turns) == (
        "Only the operator may stop every conversation."
    )
    assert turns.told == []


def test_stop_with_something_else_stops_nothing() -> None:
    turns = FakeTurns(1)

    assert "'everything'" in answer("/stop everything", turns=turns)
    assert turns.told == []


@pytest.mark.parametrize("standing", [OPERATOR_ATTENDED, GUEST_ATTENDED])
def test_usage_is_of_this_conversation(standing: Standing) -> None:
    assert answer("/usage", standing=standing) == "of main"
    assert "'week'" in answer("/usage week", standing=standing)


def test_only_the_operator_sees_what_everything_took() -> None:
    assert answer("/usage all") == "everything"
    assert (
        answer("/usage all", standing=GUEST_ATTENDED) == "Only the operator may see what everything took."
    )
