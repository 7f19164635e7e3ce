"""A known vendor on its own wire: what a turn cost is on the bill, and a picture reaches the model."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bot import Bot, Model, collect, fresh_id

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
USAGE = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000}
VENDORS = {
    "openai": ("gpt-5", 2_250_000),
    "anthropic": ("claude-haiku-4-5", 1_500_000),
    "xai": ("grok-4.5", None),  # its price holds for shorter requests only
}


@pytest.fixture(params=VENDORS)
def wired(request: pytest.FixtureRequest) -> Iterator[tuple[str, Bot, Model]]:
    model = Model({"default": {"say": "a dot", "usage": USAGE}})
    bot = Bot(model)
    name, _ = VENDORS[request.param]
    (bot.home / "config.toml").write_text(
        f'[provider]\nname = "{request.param}"\n'
        f'[providers.{request.param}]\nbase_url = "{model.base_url}"\nmodel = "{name}"\n[http]\nport = 0\n'
    )
    bot.start()
    yield request.param, bot, model
    bot.close()
    model.close()


def send(bot: Bot, text: str, picture: bytes | None = None) -> dict[str, Any]:
    """The end of a turn about these words and this picture."""
    params: dict[str, object] = {"text": text, "client_id": fresh_id()}
    with bot.connect() as connection:
        if picture is not None:
            data = base64.b64encode(picture).decode()
            blob_id = connection.call("blob", {"data": data}, 10.0)["blob_id"]
            params["attachments"] = [{"blob_id": blob_id, "name": "dot", "media_type": "image/png"}]
        return dict(collect(connection.stream("message", params, 30.0)).result)


def test_picture_reaches_the_model_with_every_question_and_the_cost_the_bill(
    wired: tuple[str, Bot, Model],
) -> None:
    vendor, bot, model = wired

    first = send(bot, "what is it?", PNG)
    send(bot, "and its colour?")

    assert first["text"] == "a dot", first
    encoded = base64.b64encode(PNG).decode()
    bodies = [json.dumps(request["body"]) for request in model.requests()]
    assert [body.count(encoded) for body in bodies[-2:]] == [1, 1]
    assert first["usage"]["cost_micro_usd"] == VENDORS[vendor][1]
    with bot.connect() as connection:
        total = connection.call("usage.report", {"by": "model"}, 10.0)["total"]
    assert (total["calls"], total["input_tokens"]) == (2, 2_000_000)
