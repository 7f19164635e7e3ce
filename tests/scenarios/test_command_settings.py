"""What the owner says about commands reaches the commands of the agent."""

from __future__ import annotations

from tests.bot import Bot, Model

CONFIG = """
[commands]
environment = ["PATH", "LC_*"]
open_files = 64
cpu_s = 77
"""
SCRIPT = "echo files $(ulimit -n) cpu $(ulimit -t); echo lang ${LANG-none} home ${HOME-none}"


def test_limits_and_variables_of_the_config_hold_for_a_shell_command() -> None:
    call = {"tool_calls": [{"name": "shell", "arguments": {"script": SCRIPT}}]}
    model = Model({"steps": [call, {"say": "done"}]})
    bot = Bot(model, config=CONFIG)
    try:
        bot.start()
        reply = bot.say("look")
    finally:
        bot.close()
        model.close()

    said = next(event.data["text"] for event in reply.events if event.name == "tool_result")
    assert said.startswith("files 64 cpu 77\nlang none home none\n")
