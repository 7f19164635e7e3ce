"""A person, the daemon and a scripted model: what is said, done and heard."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from fermix.errors import FermixError
from tests.bot import fresh_id, running, wait_for

ECHO = {"rules": [{"when": "", "then": [{"say": "You said: {text}"}]}]}


def write_then_read(path: Path) -> dict[str, object]:
    return {
        "steps": [
            {"tool_calls": [{"name": "file_write", "arguments": {"path": str(path), "content": "milk\n"}}]},
            {"tool_calls": [{"name": "shell", "arguments": {"script": f"cat {path}; echo and eggs"}}]},
            {"say": "The list says milk and eggs.", "chunks": 4},
        ]
    }


def test_model_writes_a_file_runs_a_command_and_answers(tmp_path: Path) -> None:
    target = tmp_path / "list.txt"
    with running(write_then_read(target)) as bot:
        reply = bot.say("make a list")

        assert reply.text == "The list says milk and eggs."
        assert target.read_text() == "milk\n"
        results = [event.data for event in reply.events if event.name == "tool_result"]
        assert "milk\nand eggs\n" in results[1]["text"]
        shown = "".join(event.data["text"] for event in reply.events if event.name == "text_delta")
        assert shown == reply.text


def test_events_come_in_order_and_end_with_done(tmp_path: Path) -> None:
    with running(write_then_read(tmp_path / "list.txt")) as bot:
        reply = bot.say("make a list")

    seqs = [event.seq for event in reply.events]
    assert seqs == sorted(set(seqs))
    names = [name for name in reply.names if name not in ("phase_change", "progress")]
    call = ["tool_call_start", "tool_call_complete", "tool_result"]
    # words that come together are told together
    assert [name for name, _ in groupby(names)] == ["accepted", *call, *call, "text_delta", "done"]


def test_client_that_left_resumes_by_sequence_and_misses_nothing(tmp_path: Path) -> None:
    script = {"steps": [{"say": "one two three four five six", "chunks": 6, "delay_ms": 150}]}
    with running(script) as bot:
        with bot.connect() as connection:
            stream = iter(connection.stream("message", {"text": "count", "client_id": fresh_id()}, 30.0))
            seen = [next(stream) for _ in range(4)]
        turn_id = seen[0].data["turn_id"]

        rest = bot.resume(turn_id, seen[-1].seq)

    events = [*seen, *(event for event in rest.events if event.seq > seen[-1].seq)]
    text = "".join(event.data["text"] for event in events if event.name == "text_delta")
    assert text == "one two three four five six" == rest.text


def test_same_client_id_is_the_same_message() -> None:
    with running(ECHO) as bot:
        client_id = fresh_id()

        first = bot.say("hello", client_id=client_id)
        again = bot.say("hello", client_id=client_id)

        assert first.result["turn_id"] == again.result["turn_id"]
        with bot.connect() as connection:
            listed = connection.call("sessions.messages", {"session": "main"}, 10.0)["messages"]
        assert [message["text"] for message in listed] == ["hello", "You said: hello"]


def test_second_message_waits_for_the_first_turn() -> None:
    script = {
        "rules": [
            {"when": "slow", "then": [{"say": "one", "first_delay_ms": 600}]},
            {"when": "quick", "then": [{"say": "two"}]},
        ]
    }
    with running(script) as bot, bot.connect() as first, bot.connect() as second:
        slow = iter(first.stream("message", {"text": "slow", "client_id": fresh_id()}, 30.0))
        next(slow)
        quick = iter(second.stream("message", {"text": "quick", "client_id": fresh_id()}, 30.0))
        next(quick)
        wait_for(
            "the second message to wait", lambda: bot.status()["turns"] == {"running": 1, "waiting": 1}
        )

        texts = [list(stream)[-1].data["text"] for stream in (slow, quick)]

        assert texts == ["one", "two"]


def test_other_conversations_do_not_wait() -> None:
    script = {
        "rules": [
            {"when": "slow", "then": [{"say": "one", "first_delay_ms": 3000}]},
            {"when": "quick", "then": [{"say": "two"}]},
        ]
    }
    with running(script) as bot, bot.connect() as first:
        slow = iter(first.stream("message", {"text": "slow", "client_id": fresh_id()}, 30.0))
        next(slow)

        assert bot.say("quick", session="other").text == "two"
        assert bot.status()["turns"]["running"] == 1


def test_stop_ends_the_running_turn_of_this_conversation_only() -> None:
    script = {"rules": [{"when": "slow", "then": [{"say": "never", "first_delay_ms": 20000}]}]}
    with running(script) as bot, bot.connect() as first, bot.connect() as other:
        here = iter(first.stream("message", {"text": "slow", "client_id": fresh_id()}, 30.0))
        there = iter(
            other.stream("message", {"text": "slow", "session": "b", "client_id": fresh_id()}, 30.0)
        )
        next(here), next(there)
        wait_for("both to run", lambda: bot.status()["turns"]["running"] == 2)

        said = bot.say("/stop")

        assert said.text == "Stopped 1 running turn."
        assert list(here)[-1].data["status"] == "cancelled"
        assert bot.status()["turns"]["running"] == 1
        assert bot.say("/stop all").text == "Stopped 1 running turn."


def test_conversation_goes_on_after_a_stopped_tool(tmp_path: Path) -> None:
    script = {
        "rules": [
            {
                "when": "sleep",
                "then": [{"tool_calls": [{"name": "shell", "arguments": {"script": "sleep 60"}}]}],
            },
            {"when": "and now", "then": [{"say": "fine"}]},
        ]
    }
    with running(script) as bot, bot.connect() as connection:
        stream = iter(connection.stream("message", {"text": "sleep", "client_id": fresh_id()}, 30.0))
        wait_for("the tool to run", lambda: next(stream).name == "tool_call_complete")
        bot.say("/stop")
        list(stream)

        assert bot.say("and now").text == "fine"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"text": "  ", "client_id": fresh_id()}, "usage"),
        ({"text": "x" * 300_000, "client_id": fresh_id()}, "usage"),
        ({"text": "hi", "client_id": "not an id"}, "invalid_params"),
        ({"text": "hi"}, "invalid_params"),
        ({"text": 5, "client_id": fresh_id()}, "invalid_params"),
        ({"text": "hi", "client_id": fresh_id(), "session": "a\nb"}, "usage"),
    ],
)
def test_message_that_cannot_be_taken_is_refused_by_name(bot_that_echoes, params, code) -> None:
    with bot_that_echoes.connect() as connection, pytest.raises(FermixError) as refused:
        connection.call("message", params, 10.0)

    assert refused.value.code == code


def test_attached_file_reaches_the_workspace(tmp_path: Path) -> None:
    with running(ECHO) as bot, bot.connect() as connection:
        blob = connection.call("blob", {"data": "aGVsbG8="}, 10.0)
        connection.call("blob", {"blob_id": blob["blob_id"], "data": "IQ=="}, 10.0)
        params = {
            "text": "look",
            "client_id": fresh_id(),
            "attachments": [{"blob_id": blob["blob_id"], "name": "../../etc/note.txt"}],
        }
        result = connection.call("message", params, 30.0)

        stored = list((bot.home / "workspace/attachments").rglob("note.txt"))
        assert [path.read_text() for path in stored] == ["hello!"]
        assert str(stored[0]) in result["text"]


def test_stopped_answer_is_kept_as_far_as_it_was_said() -> None:
    script = {
        "rules": [
            {"when": "count", "then": [{"say": "one two three", "chunks": 3, "delay_ms": 700}]},
            {"when": "again", "then": [{"say": "fine"}]},
        ]
    }
    with running(script) as bot, bot.connect() as connection:
        stream = iter(connection.stream("message", {"text": "count", "client_id": fresh_id()}, 30.0))
        wait_for("the first word", lambda: next(stream).name == "text_delta")
        bot.say("/stop")
        assert list(stream)[-1].data["text"] == "Stopped by /stop."

        listed = connection.call("sessions.messages", {"session": "main"}, 10.0)["messages"]

    assert [message["text"] for message in listed] == ["count", "one t"]
