"""A turn whose command would end the daemon that runs it."""

from __future__ import annotations

import sys

from tests.bot import CHECKOUT, running


def test_a_daemon_is_not_ended_by_a_command_of_its_own_turn() -> None:
    fermix = f"'{sys.executable}' -m fermix"
    script = f"cd '{CHECKOUT}'; {fermix} stop; {fermix} restart"
    call = {"tool_calls": [{"name": "shell", "arguments": {"script": script}}]}
    answer = {"say": "It goes on."}

    with running({"rules": [{"when": "restart", "then": [call, answer]}]}) as bot:
        before = bot.arbiter
        reply = bot.say("restart yourself")
        result = next(event.data["text"] for event in reply.events if event.name == "tool_result")

        assert reply.text == "It goes on."
        assert result.count("runs inside the daemon") == 2
        assert "in a terminal of your own: fermix restart" in result
        assert (bot.arbiter, bot.is_ready()) == (before, True)
