"""The scripted model answers as its script says, in a process of its own too."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from fermix.testing.model_script import Script, Step, read_script
from fermix.testing.model_server import ModelServer


def post(url: str, *messages: tuple[str, str]) -> str:
    """The text a model at `url` answers a conversation with."""
    body = {"messages": [{"role": role, "content": text} for role, text in messages]}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        lines = [line[6:] for line in response if line.startswith(b"data: {")]
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


def test_steps_are_taken_one_by_one_and_then_refused_clearly() -> None:
    with ModelServer({"say": "one"}, {"say": "two", "chunks": 3}) as server:
        assert [post(server.base_url, ("user", "x")) for _ in range(2)] == ["one", "two"]
        with pytest.raises(urllib.error.HTTPError, match="500"):
            post(server.base_url, ("user", "x"))


def test_a_rule_answers_by_what_was_said_and_how_far_the_turn_is() -> None:
    rules = read_script(
        b'{"rules": [{"when": "work", "then": [{"tool_calls": [{"name": "t"}]}, {"say": "done {text}"}]},'
        b' {"when": "", "then": [{"say": "echo {text}"}]}]}'
    )
    with ModelServer(script=rules) as server:
        assert post(server.base_url, ("user", "hi")) == "echo hi"
        assert post(server.base_url, ("user", "work 7")) == ""
        history = (("user", "work 7"), ("assistant", ""), ("tool", "result"))
        assert [post(server.base_url, *history) for _ in range(2)] == ["done work 7"] * 2


def test_a_script_with_an_unknown_word_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown field"):
        read_script(b'[{"sya": "x"}]')
    assert read_script(b'[{"say": "x"}]') == Script(steps=[Step(say="x")])


def test_its_own_process_prints_its_port_and_tells_what_it_was_asked(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"default": {"say": "always"}}')
    command = [sys.executable, "-m", "fermix.testing.model_server", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        assert post(url + "/v1", ("user", "hello")) == "always"
        with urllib.request.urlopen(f"{url}/_requests", timeout=10) as response:
            (seen,) = json.load(response)["requests"]
        process.send_signal(signal.SIGTERM)
    assert seen["body"]["messages"] == [{"role": "user", "content": "hello"}]
    assert 0 < seen["received_ns"] <= seen["first_byte_ns"] <= seen["last_byte_ns"]
    assert seen["ended"] == "done"
