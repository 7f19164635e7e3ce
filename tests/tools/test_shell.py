"""The shell tool through a real command host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fermix.errors import Cancelled, ToolFailed, ToolRetry
from fermix.process import CommandResult, Ending
from fermix.tasks import Cancel, TaskGroup, sleep
from fermix.tools.shell import describe, shell
from tests.effects import World


def run(world: World, script: str, **arguments: object) -> str:
    return shell.run(world.context(), {"script": script, **arguments})


def test_output_comes_first_then_the_exit_code(world: World) -> None:
    said = run(world, "echo out; echo err >&2; exit 3")

    assert re.fullmatch(r"out\nerr\n\[exit code 3, \d\.\d s\]", said)


def test_ending_stands_on_a_line_of_its_own(world: World) -> None:
    assert re.fullmatch(r"no end\n\[exit code 0, .* s\]", run(world, "printf 'no end'"))
    assert re.fullmatch(r"\[exit code 0, .* s\]", run(world, "true"))


def test_noise_of_a_terminal_is_left_out(world: World) -> None:
    said = run(world, r"printf '\033[31mred\033[0m\n1%%\r100%%\n'; yes again | head -50")

    assert said.startswith("red\n100%\nagain\n[… the line above 49 more times …]\n[exit code 0")


def test_script_runs_in_the_working_folder_without_the_daemons_variables(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERMIX_SECRET_KEY", "sk-123")

    said = run(world, "pwd; env")

    assert said.startswith(f"{world.workspace}\n")
    assert "sk-123" not in said


def test_timeout_is_named_and_ends_everything(world: World) -> None:
    said = run(world, "echo begun; sleep 60 & sleep 60", timeout_s=1)

    assert re.fullmatch(r"begun\n\[ended by timeout after [123]\.\d s; everything .*\]", said)


def test_signal_is_named(world: World) -> None:
    assert "[ended by signal 9 after" in run(world, "kill -9 $$")


def test_flood_is_cut_and_said_to_be(world: World) -> None:
    said = run(world, "yes 1234567", timeout_s=30)

    assert len(said) < 1_100_000
    assert "printed too much; the output above is cut" in said[-200:]


def test_bytes_that_are_no_text_are_replaced(world: World) -> None:
    assert run(world, r"printf 'a\377b\n'").startswith("a\ufffdb\n")


@pytest.mark.parametrize("script", ["", "  \n", "echo a\0b"])
def test_script_that_is_none_is_refused(world: World, script: str) -> None:
    with pytest.raises(ToolRetry, match="expected shell commands"):
        run(world, script)


@pytest.mark.parametrize("timeout_s", [0, -1, 601])
def test_timeout_out_of_range_is_refused(world: World, timeout_s: int) -> None:
    with pytest.raises(ToolRetry, match="expected 1 to 600"):
        run(world, "true", timeout_s=timeout_s)


def test_script_too_long_for_the_kernel_is_a_failure_in_words(world: World) -> None:
    with pytest.raises(ToolFailed, match=r"not started.*too long"):
        run(world, "true " + "x" * 200_000)


def test_stop_ends_the_script_and_the_turn(world: World, tmp_path: Path) -> None:
    cancel = Cancel()
    context = world.context(cancel=cancel)
    group = TaskGroup("stop")
    begun = world.workspace / "begun"

    def stop() -> None:
        while not begun.exists():
            sleep(0.01)
        cancel.set("by /stop")

    group.start(stop)
    with pytest.raises(Cancelled, match="by /stop"):
        shell.run(context, {"script": "touch begun; sleep 60"})


def test_progress_is_told_while_it_runs(world: World) -> None:
    told: list[str] = []

    shell.run(world.context(progress=told.append), {"script": "echo one; sleep 0.2; echo two"})

    assert "".join(told) == "one\ntwo\n" and len(told) > 1


@pytest.mark.parametrize(
    ("ending", "words"),
    [(Ending.STALLED, "nobody could take its output"), (Ending.LOST, "how it ended is unknown")],
)
def test_end_that_is_no_exit_is_told_as_what_it_is(ending: Ending, words: str) -> None:
    result = CommandResult(
        output="x\n", exit_code=None, signal=None, ended=ending, is_cut=False, duration_ms=1500
    )

    assert words in describe(result)
