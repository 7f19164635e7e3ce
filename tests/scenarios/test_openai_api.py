"""A program that speaks OpenAI's wire and a whole daemon: whose history it is, and what a kill leaves."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fermix.testing.model_script import without_note
from tests.bot import Bot, Model, wait_for
from tests.states import rows

SCRIPT = {
    "rules": [
        {"when": "slowly", "then": [{"say": "one two three four", "chunks": 4, "delay_ms": 400}]},
        {"when": "", "then": [{"say": "You said: {text}", "chunks": 3}]},
    ]
}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    made = Model(SCRIPT)
    yield made
    made.close()


@pytest.fixture(scope="module")
def bot(model: Model) -> Iterator[Bot]:
    made = Bot(model, full=True)
    made.start()
    yield made
    made.close()


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@contextlib.contextmanager
def asking(
    bot: Bot, *messages: Any, headers: dict[str, str] | None = None, **more: Any
) -> Iterator[http.client.HTTPResponse]:
    """The answer's head; its body is still to be read."""
    connection = http.client.HTTPConnection(bot.address, timeout=30)
    body = json.dumps({"model": "fermix", "messages": list(messages), **more})
    sent = {"Authorization": f"Bearer {bot.token}", "Content-Type": "application/json", **(headers or {})}
    connection.request("POST", "/v1/chat/completions", body, sent)
    with contextlib.closing(connection), contextlib.closing(connection.getresponse()) as answer:
        yield answer


def told(bot: Bot, *messages: Any, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """A whole answer."""
    with asking(bot, *messages, headers=headers) as answer:
        assert answer.status == 200
        return dict(json.loads(answer.read()))


def streamed(answer: http.client.HTTPResponse) -> tuple[str, bool]:
    """The words of a stream, and whether it came to its end."""
    raw = b""
    with contextlib.suppress(http.client.IncompleteRead, ConnectionResetError):
        while piece := answer.read1(65_536):
            raw += piece
    lines = [line[6:] for line in raw.decode().split("\n") if line.startswith("data: ")]
    chunks = [json.loads(line) for line in lines if line.startswith("{")]
    words = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])
    return words, "[DONE]" in lines


def test_history_that_the_program_tells_reaches_the_model_and_no_list(bot: Bot, model: Model) -> None:
    answer = told(
        bot,
        {"role": "system", "content": "Rhyme."},
        user("one"),
        {"role": "assistant", "content": "1"},
        user("two"),
    )

    asked = [
        (each["role"], without_note(each["content"]))
        for each in model.requests()[-1]["body"]["messages"][1:]
    ]
    words = "Instructions of the calling program:\nRhyme.\n\nThe message:\ntwo"
    assert asked == [("user", "one"), ("assistant", "1"), ("user", words)]
    with bot.connect() as connection:
        listed = connection.call("sessions.list", {}, 10.0)["sessions"]
    assert answer["fermix"]["session"] not in [each["session"] for each in listed]
    last = "SELECT state FROM inbox ORDER BY rowid DESC LIMIT 1"
    wait_for("the answer to count as delivered", lambda: rows(bot, last) == [("committed",)])


def test_named_session_is_the_one_of_the_command_line(bot: Bot, model: Model) -> None:
    bot.say("from the command line", session="shared")

    told(bot, user("from a program"), headers={"X-Fermix-Session": "shared"})

    messages = model.requests()[-1]["body"]["messages"]
    asked = [without_note(each["content"]) for each in messages if each["role"] == "user"]
    assert asked == ["from the command line", "from a program"]


def test_picture_lies_in_the_workspace_for_the_tools(bot: Bot) -> None:
    url = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()

    told(bot, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})

    (picture,) = (bot.home / "workspace/attachments").rglob("image-1.png")
    assert picture.read_bytes() == b"\x89PNG"


def test_answer_cut_by_a_killed_worker_is_told_whole_to_whoever_comes_with_the_same_key(bot: Bot) -> None:
    key = {"Idempotency-Key": "slow one"}
    with asking(bot, user("slowly"), headers=key, stream=True) as first:
        first.readline()
        bot.kill(bot.worker)
        wait_for("the next worker", bot.is_ready)
        assert streamed(first)[1] is False

    with asking(bot, user("slowly"), headers=key, stream=True) as second:
        assert streamed(second) == ("one two three four", True)
    counted = "SELECT count(*) FROM messages WHERE body LIKE '%slowly%' AND role = 'user'"
    assert rows(bot, counted) == [(1,)]


def test_turn_of_a_program_that_left_is_stopped(bot: Bot) -> None:
    with asking(bot, user("slowly, and alone"), stream=True) as answer:
        answer.readline()

    last = "SELECT state FROM turns ORDER BY started_ms DESC LIMIT 1"
    wait_for("the turn to be stopped", lambda: rows(bot, last) == [("cancelled",)])


def test_refused_words_leave_no_session_behind(bot: Bot) -> None:
    long = user("x" * 2_000_000)
    with asking(bot, user("one"), {"role": "assistant", "content": "1"}, long) as answer:
        refused = json.loads(answer.read())["error"]

    assert (answer.status, refused["code"]) == (400, "usage")
    with bot.connect() as connection:
        listed = connection.call("sessions.list", {}, 10.0)["sessions"]
    assert [each["session"] for each in listed if each["session"].startswith("v1-")] == []
