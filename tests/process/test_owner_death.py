"""What is left when the process that runs commands is killed: nothing, within five seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fermix.process import GroupLedger
from tests.process.survivors import await_none, await_some, marked

OWNER = Path(__file__).with_name("owner.py")
CHECKOUT = Path(__file__).parents[2]
Owner = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def owner(tmp_path: Path, mark: str) -> Iterator[Owner]:
    """Starts stand-in workers; each is told which nasty commands to run and has started them on return."""
    started: list[subprocess.Popen[str]] = []

    def start(*kinds: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        words = [word for kind in kinds for word in (kind, mark)]
        process = subprocess.Popen(
            [sys.executable, str(OWNER), str(tmp_path / "run.groups"), *options, *words],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def monitors_of(pid: int) -> list[int]:
    """The monitors a stand-in worker has."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if Path(f"/proc/{child}/comm").read_text() == "fermix-monitor\n"]


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("kind", ["stubborn", "walking", "wide"])
def test_a_killed_owner_leaves_nothing(owner: Owner, mark: str, kind: str) -> None:
    process = owner(kind)
    await_some(mark, {"stubborn": 5, "walking": 3, "wide": 42}[kind])

    end(process)

    await_none(mark, 5.0)


def test_many_commands_of_a_killed_owner_leave_nothing(owner: Owner, mark: str) -> None:
    process = owner("stubborn", "stubborn", "wide", "stubborn")
    await_some(mark, 57)

    end(process)

    await_none(mark, 5.0)


def test_a_killed_owner_leaves_nothing_with_the_fallback(owner: Owner, mark: str) -> None:
    process = owner("stubborn", options=("--fallback",))
    await_some(mark, 6)

    end(process)

    await_none(mark, 5.0)


def test_monitors_neither_hold_the_owners_descriptors_nor_feel_its_signals(owner: Owner, mark: str) -> None:
    process = owner("wide")
    await_some(mark, 42)
    (monitor,) = monitors_of(process.pid)

    kinds = [str(entry.readlink()).split(":")[0] for entry in Path(f"/proc/{monitor}/fd").iterdir()]
    assert sorted(kinds) == ["anon_inode", "pipe", "pipe"]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        os.kill(monitor, number)
    time.sleep(0.1)
    assert Path(f"/proc/{monitor}/comm").read_text() == "fermix-monitor\n"

    end(process)
    await_none(mark, 5.0)


def test_a_monitor_does_not_keep_its_owners_memory(owner: Owner, mark: str) -> None:
    process = owner("wide")
    await_some(mark, 42)
    (monitor,) = monitors_of(process.pid)

    def resident_kib(pid: int) -> int:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    assert resident_kib(monitor) < 5000 < resident_kib(process.pid)

    end(process)
    await_none(mark, 5.0)


def test_a_family_whose_monitor_is_killed_is_ended_by_the_owner(owner: Owner, mark: str) -> None:
    process = owner("stubborn")
    await_some(mark, 6)

    for monitor in monitors_of(process.pid):
        os.kill(monitor, signal.SIGKILL)

    deadline = time.monotonic() + 5
    while marked(mark) not in ([process.pid], []) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked(mark) in ([process.pid], [])  # the owner ends by itself when its command has


def test_leftovers_of_killed_monitors_are_swept_at_the_next_start(
    owner: Owner, mark: str, tmp_path: Path
) -> None:
    process = owner("wide", "wide")
    await_some(mark, 83)
    monitors = monitors_of(process.pid)
    process.send_signal(signal.SIGSTOP)
    for monitor in monitors:
        os.kill(monitor, signal.SIGKILL)
    end(process)
    await_some(mark, 80)

    killed = GroupLedger(tmp_path / "run.groups").sweep_leftovers()

    await_none(mark, 0.5)
    assert killed >= 80
    assert (tmp_path / "run.groups").read_text() == ""
