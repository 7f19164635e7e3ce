"""What a program does with OpenAI's own client; run in an environment that has it.

python openai_chat.py BASE_URL   with the token in OPENAI_API_KEY; a line for each thing that holds
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable

import openai

CHECKS: list[Callable[[openai.OpenAI], object]] = []
ASKED = [{"role": "user", "content": "hello"}]


def check(act: Callable[[openai.OpenAI], object]) -> Callable[[openai.OpenAI], object]:
    """Something that must hold."""
    CHECKS.append(act)
    return act


def raised(kind: type[openai.APIStatusError], act: Callable[[], object]) -> openai.APIStatusError:
    """The error `act` raises, of this very class."""
    try:
        act()
    except openai.APIStatusError as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


@check
def models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["fermix"]
    assert client.models.retrieve("fermix").owned_by == "fermix"


@check
def answer_comes_whole(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="fermix", messages=ASKED, temperature=0.1)

    assert answer.choices[0].message.content == "You said: hello"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None and answer.usage.total_tokens > 0


@check
def answer_comes_as_a_stream(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="fermix", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)

    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == "You said: hello" and len(pieces) > 3
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None and not chunks[-1].choices


@check
def answer_comes_through_the_stream_helper(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="fermix", messages=ASKED) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_completion()

    assert answer.choices[0].message.content == "You said: hello"


@check
def many_ask_at_once(client: openai.OpenAI) -> None:
    async def ask(other: openai.AsyncOpenAI, number: int) -> str:
        messages = [{"role": "user", "content": f"number {number}"}]
        stream = await other.chat.completions.create(model="fermix", messages=messages, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=client.base_url, max_retries=0) as other:
            return await asyncio.gather(*(ask(other, number) for number in range(20)))

    assert asyncio.run(ask_all()) == [f"You said: number {number}" for number in range(20)]


@check
def history_of_the_program_is_the_history_of_the_turn(client: openai.OpenAI) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "count the history"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "again"},
    ]
    answer = client.chat.completions.create(model="fermix", messages=messages)

    told = answer.choices[0].message.content or ""
    assert "Instructions of the calling program:\nBe brief." in told and told.endswith("again")


@check
def session_remembers(client: openai.OpenAI) -> None:
    named = {"X-Fermix-Session": "openai-client"}
    first = client.chat.completions.create(model="fermix", messages=ASKED, extra_headers=named)
    second = client.chat.completions.create(
        model="fermix", messages=ASKED, metadata={"session": "openai-client"}
    )

    assert first.fermix["session"] == second.fermix["session"] == "openai-client"


@check
def same_key_is_answered_once(client: openai.OpenAI) -> None:
    key = {"Idempotency-Key": "order 7"}
    first, second = (
        client.chat.completions.create(model="fermix", messages=ASKED, extra_headers=key) for _ in range(2)
    )
    assert (first.id, first.choices[0].message.content) == (second.id, second.choices[0].message.content)

    other = [{"role": "user", "content": "something else"}]
    error = raised(
        openai.ConflictError,
        lambda: client.chat.completions.create(model="fermix", messages=other, extra_headers=key),
    )
    assert error.code == "idempotency_key_reused"


@check
def picture_comes_along(client: openai.OpenAI) -> None:
    picture = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": picture}}]
    answer = client.chat.completions.create(model="fermix", messages=[{"role": "user", "content": content}])

    assert "[attached: image-1.png (image/png, 8 bytes)" in (answer.choices[0].message.content or "")


@check
def tools_are_ignored_with_a_notice(client: openai.OpenAI) -> None:
    tools = [{"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}}]
    raw = client.chat.completions.with_raw_response.create(model="fermix", messages=ASKED, tools=tools)

    assert "Ignored: tools" in raw.headers["x-fermix-notice"]
    assert raw.parse().fermix["notice"] == raw.headers["x-fermix-notice"]


@check
def errors_are_the_client_s_own_classes(client: openai.OpenAI) -> None:
    stranger = client.with_options(api_key="fx-wrong")
    error = raised(openai.AuthenticationError, stranger.models.list)
    assert error.status_code == 401
    error = raised(openai.NotFoundError, lambda: client.models.retrieve("gpt-4o"))
    assert error.code == "model_not_found"
    error = raised(
        openai.NotFoundError, lambda: client.chat.completions.create(model="gpt-4o", messages=ASKED)
    )
    assert (error.code, error.param) == ("model_not_found", "model")
    error = raised(
        openai.BadRequestError, lambda: client.chat.completions.create(model="fermix", messages=ASKED, n=2)
    )
    assert error.param == "n"
    error = raised(openai.NotFoundError, lambda: client.embeddings.create(model="fermix", input="x"))
    assert error.type == "not_found_error"


@check
def failed_turn_is_an_error_and_not_tried_again(client: openai.OpenAI) -> None:
    broken = [{"role": "user", "content": "break"}]
    error = raised(
        openai.InternalServerError, lambda: client.chat.completions.create(model="fermix", messages=broken)
    )
    assert error.status_code == 502 and error.response.headers["x-should-retry"] == "false"
    try:
        for _ in client.chat.completions.create(model="fermix", messages=broken, stream=True):
            pass
    except openai.APIError as told:
        assert told.code, told
    else:
        raise AssertionError("the stream of a failed turn ended as if it had an answer")


def main() -> int:
    client = openai.OpenAI(base_url=sys.argv[1], timeout=60.0)
    for act in CHECKS:
        act(client)
        print(act.__name__.replace("_", " "), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
