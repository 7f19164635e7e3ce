"""[commands]: what a command of the agent may do and see, from the next turn on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fermix.clock import SystemClock
from fermix.process import Command, CommandHost, CommandSettings, GroupLedger
from fermix.process.command import Ending
from fermix.tasks import Cancel, sleep
from tests.settings.conftest import Lab


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("open_files", 64, "Max open files"),
        ("cpu_s", 77, "Max cpu time"),
        ("memory_bytes", 1 << 28, "Max data size"),
        ("file_size_bytes", 1 << 20, "Max file size"),
    ],
)
def test_commands_are_limited_as_the_setting_says(lab: Lab, name: str, value: int, limit: str) -> None:
    script = f"grep '{limit}' /proc/self/limits"
    before = lab.shell(script)

    lab.put(commands={name: value})

    assert f" {value} " not in before
    assert f" {value} " in lab.shell(script)


def test_commands_see_the_variables_the_setting_names(lab: Lab) -> None:
    script = "echo lang ${LANG-none}"
    before = lab.shell(script)

    lab.put(commands={"environment": ["PATH"]})

    assert before.startswith("lang C.UTF-8\n")
    assert lab.shell(script).startswith("lang none\n")


@pytest.mark.parametrize(("grace_s", "is_heard"), [(10.0, True), (0.0, False)])
def test_command_gets_the_time_for_last_words_that_the_setting_says(
    lab: Lab, grace_s: float, is_heard: bool
) -> None:
    lab.put(commands={"grace_s": grace_s})

    said = lab.shell("trap 'sleep 0.5; echo last words; exit' TERM; sleep 60 & wait", timeout_s=1)

    assert ("last words" in said) is is_heard


def test_watcher_of_a_command_may_take_as_long_as_the_setting_says(tmp_path: Path) -> None:
    settings = CommandSettings(reader_timeout_s=10.0)
    host = CommandHost(GroupLedger(tmp_path / "run.groups"), lambda: settings, SystemClock())
    command = Command(
        argv=("/bin/sh", "-c", "echo words"), cwd=tmp_path, environment=dict(os.environ), timeout_s=20
    )

    patient = host.run(command, Cancel(), lambda text: sleep(0.5))
    settings = CommandSettings(reader_timeout_s=0.1)
    impatient = host.run(command, Cancel(), lambda text: sleep(0.5))
    host.stop(5.0)

    assert (patient.ended, impatient.ended) == (Ending.EXIT, Ending.STALLED)


def test_running_turn_keeps_the_commands_it_began_with(lab: Lab, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    show = "grep 'Max open files' /proc/self/limits"
    waiting = {"name": "shell", "arguments": {"script": f"while ! test -e {gate}; do sleep 0.05; done"}}
    looking = {"name": "shell", "arguments": {"script": show}}
    lab.model.script({"steps": [{"tool_calls": [waiting]}, {"tool_calls": [looking]}, {"say": "done"}]})
    before = len(lab.model.requests())
    session = lab.begin()

    deadline = time.monotonic() + 10
    while len(lab.model.requests()) == before and time.monotonic() < deadline:
        time.sleep(0.01)
    lab.put(commands={"open_files": 64})
    gate.touch()
    lab.say("next", session=session)

    results = [message["content"] for message in lab.asked()["messages"] if message["role"] == "tool"]
    assert "Max open files" in results[1] and " 64 " not in results[1]
    assert " 64 " in lab.shell(show)
