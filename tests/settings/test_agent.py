"""[agent], [gateway], [provider] and [providers.NAME]: a reload changes what the next turn does."""

from __future__ import annotations

import socket

import pytest

from fermix.errors import FermixError
from tests.bot import Reply, wait_for
from tests.settings.conftest import ECHO, HANGING, Lab

FOREVER = {"rules": [{"when": "", "then": [{"tool_calls": [{"name": "current_time", "arguments": {}}]}]}]}


def code(reply: Reply) -> str:
    """Why a turn failed."""
    return str(reply.result["error"]["code"])


def system(lab: Lab) -> str:
    """The instructions the model was given last."""
    return str(lab.asked()["messages"][0]["content"])


@pytest.mark.parametrize(("name", "text"), [("owner_name", "Ada"), ("instructions", "Answer in rhymes.")])
def test_words_of_the_owner_reach_the_model(lab: Lab, name: str, text: str) -> None:
    lab.say()
    before = system(lab)

    assert lab.put(agent={name: text}) == [f"agent.{name}"]
    lab.say()

    assert text not in before
    assert text in system(lab)


@pytest.mark.parametrize("steps", [1, 3])
def test_turn_may_make_as_many_model_calls_as_the_setting_says(lab: Lab, steps: int) -> None:
    lab.model.script(FOREVER)
    lab.put(agent={"steps_per_turn": steps})
    before = len(lab.model.requests())

    reply = lab.say()

    assert (reply.result["status"], code(reply)) == ("failed", "steps_used_up")
    assert len(lab.model.requests()) - before == steps


def test_model_is_shown_as_much_of_the_history_as_the_setting_says(lab: Lab) -> None:
    session = lab.session()
    for number in range(8):
        lab.say(f"message {number}", session=session)
    before = len(lab.asked()["messages"])

    lab.put(agent={"history_messages": 4})
    lab.say("the last one", session=session)

    assert before == 16
    assert len(lab.asked()["messages"]) <= 7


def test_older_part_is_summed_up_from_the_share_of_the_window_the_setting_says(lab: Lab) -> None:
    def sums(threshold: float) -> int:
        lab.put(agent={"compaction_threshold": threshold}, providers={"window_tokens": 12_000})
        before, session = len(lab.model.requests()), lab.session()
        for number in range(8):
            lab.say(f"message {number} " + "and more " * 100, session=session)
        asked = [request["body"]["messages"][0] for request in lab.model.requests()[before:]]
        return sum(str(first["content"]).startswith("You sum up") for first in asked)

    assert sums(0.95) == 0
    assert sums(0.4) > 0


def test_tool_results_are_cut_at_the_length_the_setting_says(lab: Lab) -> None:
    script = "head -c 5000 /dev/zero | tr '\\0' x"
    whole = lab.shell(script)

    lab.put(agent={"tool_result_limit_bytes": 1024})
    cut = lab.shell(script)

    assert "x" * 5000 in whole
    assert len(cut) < 1200 and "bytes left out here" in cut


def test_running_turns_follow_their_limit_up_and_down(lab: Lab) -> None:
    lab.model.script(HANGING)
    lab.put(gateway={"running_turns": 1})
    for _ in range(3):
        lab.begin()
    wait_for("one turn to run", lambda: lab.turns() == (1, 2))

    lab.put(gateway={"running_turns": 2})
    wait_for("two turns to run", lambda: lab.turns() == (2, 1))
    lab.put(gateway={"running_turns": 1})

    assert lab.turns() == (2, 1)


def test_messages_may_wait_up_to_their_limit(lab: Lab) -> None:
    lab.model.script(HANGING)
    lab.put(gateway={"waiting_messages": 1})
    session = lab.begin()
    wait_for("the turn to run", lambda: lab.turns() == (1, 0))
    lab.begin(session=session)

    with pytest.raises(FermixError, match="at most 1 may") as refused:
        lab.begin(session=session)
    lab.put(gateway={"waiting_messages": 2})
    lab.begin(session=session)

    assert refused.value.code == "queue_full"
    assert lab.turns() == (1, 2)


def test_turn_ends_at_the_time_the_setting_says(lab: Lab) -> None:
    lab.model.script(HANGING)
    lab.put(gateway={"turn_timeout_s": 1})

    reply = lab.say()

    assert (reply.result["status"], code(reply)) == ("failed", "timeout")


def test_text_over_its_limit_is_refused(lab: Lab) -> None:
    text = "x" * 2000
    lab.put(gateway={"text_limit_bytes": 1024})

    with pytest.raises(FermixError, match="2000 bytes; at most 1024"):
        lab.say(text)
    lab.put()

    assert lab.say(text).text == f"You said: {text}"


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("max_output_tokens", 7, "max_tokens"),
        ("usage_in_stream", False, "stream_options"),
        ("takes_tools", False, "tools"),
        ("model", "another", "model"),
    ],
)
def test_request_follows_the_settings_of_its_provider(
    lab: Lab, name: str, value: object, field: str
) -> None:
    lab.say()
    before = lab.asked().get(field)

    assert lab.put(providers={name: value}) == [f"providers.scripted.{name}"]
    lab.say()

    assert lab.asked().get(field) != before


def test_longest_answer_is_sent_under_the_name_the_setting_says(lab: Lab) -> None:
    lab.put(providers={"max_output_tokens": 7})
    lab.say()
    before = lab.asked()

    lab.put(providers={"max_output_tokens": 7, "max_tokens_field": "max_completion_tokens"})
    lab.say()

    assert (before["max_tokens"], lab.asked()["max_completion_tokens"]) == (7, 7)


def test_request_goes_to_the_address_the_setting_says(lab: Lab) -> None:
    lab.say()
    before = lab.model.requests()[-1]["path"]

    lab.put(providers={"base_url": lab.model.base_url.replace("/v1", "/v2")})
    lab.say()

    assert (before, lab.model.requests()[-1]["path"]) == ("/v1/chat/completions", "/v2/chat/completions")


def test_provider_and_model_are_those_the_settings_name(lab: Lab) -> None:
    other = {"providers.other": {"base_url": lab.model.base_url, "model": "of the other"}}
    lab.put(**other, provider={"name": "other"})
    lab.say()
    by_name = (lab.bot.status()["provider"], lab.asked()["model"])

    lab.put(**other, provider={"name": "other", "model": "of its own"})
    lab.say()

    assert by_name == ({"name": "other", "model": "of the other"}, "of the other")
    assert lab.asked()["model"] == "of its own"


def test_connection_is_given_up_after_the_time_the_setting_says(lab: Lab) -> None:
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    address = full.getsockname()
    waiting = [socket.socket() for _ in range(3)]
    for each in waiting:  # its queue is full: whoever comes next gets no answer
        each.setblocking(False)
        each.connect_ex(address)
    base_url = f"http://127.0.0.1:{address[1]}/v1"
    try:
        lab.put(gateway={"turn_timeout_s": 8}, providers={"base_url": base_url, "connect_timeout_s": 0.1})
        soon = lab.say()
    finally:
        for each in (full, *waiting):
            each.close()

    # With the default of 10 s the turn's own time would have been over first.
    assert code(soon) == "provider_unavailable"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("idle_timeout_s", {"say": "abcd", "chunks": 4, "hang_after": 2}),
        ("timeout_s", {"say": "x" * 600, "chunks": 600, "delay_ms": 100}),
    ],
)
def test_answer_is_given_up_after_the_time_the_setting_says(
    lab: Lab, name: str, answer: dict[str, object]
) -> None:
    lab.model.script({"rules": [{"when": "", "then": [answer]}]})
    lab.put(providers={name: 1})

    # With the defaults it would go on for longer than anybody waits here.
    assert code(lab.say()) == "timeout"


def test_ollama_is_looked_for_where_the_setting_says(lab: Lab) -> None:
    lab.model.script({**ECHO, "ollama": {"llama": ["tools"]}})
    url = lab.model.base_url.removesuffix("/v1")

    assert "local_model.ollama_url" in lab.put(provider={"name": "local"}, local_model={"ollama_url": url})
    reply = lab.say("to the Ollama")

    assert (reply.text, lab.asked()["model"]) == ("You said: to the Ollama", "llama")
