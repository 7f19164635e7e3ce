"""`provider.probe` on the control socket: a candidate with its key, or the provider in force."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fermix.errors import FermixError
from tests.bot import Bot, Model, running, wait_for

KEY = "sk-candidate-0123456789"
SCRIPT = {"models": ["big", "scripted"], "keys": [KEY], "default": {"say": "ok"}}


@pytest.fixture(scope="module")
def bot() -> Iterator[Bot]:
    with running({"default": {"say": "ok"}}) as bot:
        yield bot


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model(SCRIPT)
    yield made
    made.close()


def probe(bot: Bot, **params: object) -> dict[str, object]:
    with bot.connect() as connection:
        return connection.call("provider.probe", params, 40.0)


def test_the_provider_in_force_is_probed(bot: Bot) -> None:
    result = probe(bot)

    assert (result["status"], result["model"], result["models"]) == ("ok", "scripted", ["scripted"])
    assert isinstance(result["latency_ms"], int)


def test_a_candidate_is_probed_with_its_key_and_the_key_is_in_nothing(bot: Bot, model: Model) -> None:
    good = probe(bot, base_url=model.base_url, api_key=KEY, preferred=["big"])
    wrong = probe(bot, name="mine", base_url=model.base_url, api_key="sk-wrong-0123456789", model="big")

    assert (good["status"], good["model"]) == ("ok", "big")
    assert wrong["status"] == "auth"
    assert KEY not in bot.log_text() and "sk-wrong" not in bot.log_text()


def test_a_key_that_the_server_repeats_is_redacted(bot: Bot) -> None:
    told = {"status": 401, "error": {"message": f"Incorrect API key provided: {KEY}."}}
    model = Model({"default": told, "is_listing": False})
    try:
        result = probe(bot, base_url=model.base_url, api_key=KEY, model="big")
    finally:
        model.close()

    assert result["status"] == "auth"
    assert "***" in str(result["message"]) and KEY not in str(result)


@pytest.mark.parametrize(
    "params",
    [
        {"model": "big"},
        {"base_url": "x" * 600},
        {"api_key": 7},
        {"base_url": "http://h", "preferred": "big"},
    ],
)
def test_params_that_make_no_sense_are_refused(bot: Bot, params: dict[str, object]) -> None:
    with pytest.raises(FermixError) as refused:
        probe(bot, **params)

    assert refused.value.code in ("usage", "invalid_params")


def test_a_probe_ends_when_its_client_leaves(bot: Bot) -> None:
    model = Model({"default": {"hang": True}})
    try:
        with bot.connect() as connection:
            stream = connection.stream("provider.probe", {"base_url": model.base_url, "model": "m"}, 5.0)
            wait_for("the request", lambda: len(model.requests()) == 1)
            assert stream.read(0) is None
        wait_for("its end", lambda: model.requests()[0]["ended"] == "client_gone")
    finally:
        model.close()


def test_a_missing_secret_is_a_matter_of_the_key(model: Model) -> None:
    bot = Bot(model)
    config = bot.home / "config.toml"
    config.write_text(config.read_text().replace("[http]", 'api_key = "@secret:gone"\n[http]'))
    try:
        bot.start()
        result = probe(bot)
    finally:
        bot.close()

    assert result["status"] == "auth"
    assert "No secret named 'gone'" in str(result["message"])
    assert "gone" in str(result["hint"])
