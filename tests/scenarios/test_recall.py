"""A long tool result through the whole daemon: shown in part, kept whole, read back where it belongs."""

from __future__ import annotations

import re

from tests.bot import Bot, Model

SCRIPT = "seq 1 60000"


def called(model: Model, bot: Bot, name: str, arguments: dict[str, object], session: str) -> str:
    """What the tool said in a turn of its own."""
    call = {"name": name, "arguments": arguments}
    model.script({"steps": [{"tool_calls": [call]}, {"say": "done"}]})
    reply = bot.say("go", session=session)
    return str(next(event.data["text"] for event in reply.events if event.name == "tool_result"))


def test_long_result_is_read_back_by_lines_and_words_also_after_a_restart() -> None:
    model = Model({})
    bot = Bot(model)
    try:
        bot.start()
        shown = called(model, bot, "shell", {"script": SCRIPT}, "one")
        found = re.search(r'tool_result_recall reads them, id "(\w+)"', shown)
        assert found is not None
        assert "\n30000\n" not in shown
        id = found[1]

        by_lines = called(
            model, bot, "tool_result_recall", {"id": id, "first_line": 30_000, "lines": 2}, "one"
        )
        assert "30000\t30000\n30001\t30001" in by_lines
        bot.kill(bot.arbiter, bot.worker)
        bot.start()

        by_words = called(model, bot, "tool_result_recall", {"id": id, "query": "45678"}, "one")
        assert "45678\t45678" in by_words
        assert "No result" in called(model, bot, "tool_result_recall", {"id": id}, "another")
        with bot.connect() as connection:
            connection.call("sessions.delete", {"session": "one"}, 60.0)
        assert "No result" in called(model, bot, "tool_result_recall", {"id": id}, "one")
    finally:
        bot.close()
        model.close()
