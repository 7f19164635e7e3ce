"""A key the daemon knows is in nothing it says."""

from __future__ import annotations

from tests.bot import Bot, Model

KEY = "sk-very-secret-7f3a9"


def test_key_is_redacted_in_answers_results_history_and_log() -> None:
    says_it = {"tool_calls": [{"name": "shell", "arguments": {"script": f"echo the key is {KEY}"}}]}
    model = Model({"rules": [{"when": "", "then": [says_it, {"say": f"It is {KEY}."}]}]})
    bot = Bot(model, config='[providers.other]\nbase_url = "http://127.0.0.1:1/v1"\n')
    try:
        (bot.home / "secrets").mkdir(mode=0o700)
        (bot.home / "secrets/key").write_text(KEY)
        (bot.home / "secrets/key").chmod(0o600)
        config = bot.home / "config.toml"
        named = config.read_text().replace(
            'model = "scripted"\n', 'model = "scripted"\napi_key = "@secret:key"\n'
        )
        config.write_text(named)
        bot.start()

        reply = bot.say("what is the key?")

        results = [event.data["text"] for event in reply.events if event.name == "tool_result"]
        assert reply.text == "It is ***."
        assert "the key is ***" in results[0]
        assert KEY not in bot.log_text()
        with bot.connect() as connection:
            listed = connection.call("sessions.messages", {"session": "main"}, 10.0)["messages"]
        assert listed[-1]["text"] == "It is ***."
        assert model.requests()[0]["authorization"] == f"Bearer {KEY}"
    finally:
        bot.close()
        model.close()
