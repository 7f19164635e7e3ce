"""Settings changed under a running daemon: what runs goes on, what comes next is new."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator

import pytest

from fermix.errors import FermixError
from fermix.testing.model_script import without_note
from tests.bot import Bot, Model, Reply, collect, fresh_id, wait_for

ECHO = {"rules": [{"when": "", "then": [{"say": "You said: {text}"}]}]}
SLOW = {"rules": [{"when": "", "then": [{"say": "one two three four", "chunks": 4, "delay_ms": 150}]}]}


@pytest.fixture(scope="module")
def models() -> Iterator[list[Model]]:
    made = [Model(ECHO), Model(ECHO)]
    yield made
    for model in made:
        model.close()


@pytest.fixture
def bot(models: list[Model]) -> Iterator[Bot]:
    for model in models:
        model.script(ECHO)
    started = Bot(models[0])
    started.start()
    yield started
    started.close()


def configure(bot: Bot, model: Model, text: str = "", **provider: object) -> None:
    """Write the whole of config.toml anew."""
    more = "".join(f"{name} = {value!r}\n" for name, value in provider.items())
    (bot.home / "config.toml").write_text(
        f'[provider]\nname = "scripted"\n[providers.scripted]\nbase_url = "{model.base_url}"\n'
        f'model = "scripted"\n{more}[http]\nport = 0\n{text}'
    )


def reload(bot: Bot) -> dict[str, object]:
    with bot.connect() as connection:
        return connection.call("reload", {}, 10.0)


def begin(bot: Bot, text: str) -> tuple[threading.Thread, list[Reply]]:
    """Say something and go on as soon as the first words of the answer are there."""
    replies: list[Reply] = []
    begun = threading.Event()

    def say() -> None:
        with bot.connect() as connection:
            params = {"text": text, "client_id": fresh_id()}

            def noted() -> Iterator[object]:
                for answer in connection.stream("message", params, 30.0):
                    if getattr(answer, "name", "") == "text_delta":
                        begun.set()
                    yield answer

            replies.append(collect(noted()))

    thread = threading.Thread(target=say)
    thread.start()
    assert begun.wait(15)
    return thread, replies


def test_running_answer_comes_from_the_provider_it_began_with_and_the_next_from_the_new(
    bot: Bot, models: list[Model]
) -> None:
    old, new = models
    old.script(SLOW)
    thread, replies = begin(bot, "slowly")
    configure(bot, new, "[runtime]\ndrain_s = 1.0\n")

    outcome = reload(bot)
    next_one = bot.say("to the new one", session="other")
    thread.join(20)

    assert outcome["applied"] == ["providers.scripted.base_url"]
    assert (replies[0].text, replies[0].result["status"]) == ("one two three four", "completed")
    assert next_one.text == "You said: to the new one"
    assert without_note(new.requests()[-1]["body"]["messages"][-1]["content"]) == "to the new one"


def test_sighup_and_the_command_both_reach_the_next_worker_too(bot: Bot, models: list[Model]) -> None:
    worker = bot.worker
    configure(bot, models[0], "[gateway]\ntext_limit_bytes = 1024\n[runtime]\ndrain_s = 1.0\n")
    assert reload(bot)["applied"] == ["gateway.text_limit_bytes"]
    configure(bot, models[0], '[agent]\ninstructions = "Rhyme."\n[runtime]\ndrain_s = 1.0\n')
    os.kill(bot.arbiter, signal.SIGHUP)
    wait_for("the settings to be applied", lambda: "applied: agent.instructions" in bot.log_text())
    assert bot.worker == worker

    for text in ('[agent]\ninstructions = "Sing."\n', "[gateway]\ntext_limit_bytes = 2048\n"):
        configure(bot, models[0], text + "[runtime]\ndrain_s = 1.0\n")
        reload(bot)
        bot.kill(bot.worker)
        wait_for("the next worker", bot.is_ready)
        assert reload(bot)["unchanged"] is True


def test_bad_file_is_told_with_its_repair_and_changes_nothing(bot: Bot, models: list[Model]) -> None:
    configure(bot, models[1], "[agent]\nsteps_per_turn = 0\n")

    with pytest.raises(FermixError, match=r"steps_per_turn.*at least 1"):
        reload(bot)

    assert bot.say("still here").text == "You said: still here"
    assert without_note(models[0].requests()[-1]["body"]["messages"][-1]["content"]) == "still here"


def test_provider_without_its_key_is_refused_until_the_key_is_there(bot: Bot, models: list[Model]) -> None:
    configure(bot, models[1], api_key="@secret:mine")

    with pytest.raises(FermixError, match="No secret named 'mine'"):
        reload(bot)
    before = bot.say("to the old one")
    (bot.home / "secrets").mkdir(mode=0o700, exist_ok=True)
    path = bot.home / "secrets/mine"
    path.write_text("first-key-0123456789")
    path.chmod(0o600)
    models[1].script({**ECHO, "keys": ["first-key-0123456789"]})
    reload(bot)
    first = bot.say("one")
    models[1].script({**ECHO, "keys": ["second-key-0123456789"]})
    path.write_text("second-key-0123456789")
    second = bot.say("two")

    assert before.text == "You said: to the old one"
    assert (first.text, second.text) == ("You said: one", "You said: two")


def test_reloads_that_meet_end_with_what_the_file_says_last(bot: Bot, models: list[Model]) -> None:
    outcomes: list[object] = []

    def ask() -> None:
        outcomes.append(reload(bot))

    threads = []
    for steps in range(1, 21):
        temporary = bot.home / "config.new"
        config = bot.home / "config.toml"
        temporary.write_text(
            re.sub(r"(?s)\[agent\].*", "", config.read_text()) + f"\n[agent]\nsteps_per_turn = {steps}\n"
        )
        temporary.chmod(0o600)
        temporary.replace(config)
        if steps % 2:
            threads.append(threading.Thread(target=ask))
            threads[-1].start()
        else:
            os.kill(bot.arbiter, signal.SIGHUP)
    for thread in threads:
        thread.join(20)

    wait_for("nothing to be left", lambda: reload(bot)["unchanged"] is True)
    bot.kill(bot.worker)
    wait_for("the next worker", bot.is_ready)
    assert reload(bot)["unchanged"] is True
    assert len(outcomes) == 10


def test_what_needs_a_restart_is_named_and_left_as_it_is(bot: Bot, models: list[Model]) -> None:
    configure(bot, models[0], "[database]\nreaders = 2\n[runtime]\ndrain_s = 1.0\n")

    outcome = reload(bot)

    assert (outcome["applied"], outcome["needs_restart"]) == ([], ["database.readers"])
    assert bot.say("still here").text == "You said: still here"
