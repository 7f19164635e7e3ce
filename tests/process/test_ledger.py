"""The ledger: what it writes down, and whom its sweep spares."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermix.native import Spawned, spawn
from fermix.process import GroupLedger, proc
from fermix.tasks import sleep
from fermix.trust import OPERATOR_ATTENDED, Standing, Trust


@pytest.fixture
def sleeper(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of someone else, in a session of its own."""
    process = subprocess.Popen(["/bin/sleep", "60"], env={"TEST_MARK": mark}, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def line_of(pid: int, started: int, *, boot_id: str | None = None) -> str:
    return f"+ 01ABC {boot_id or proc.boot_id()} {pid} {started} {pid} {started}\n"


def is_alive(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def test_the_same_process_is_swept(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    facts = proc.look(sleeper.pid)
    assert facts is not None
    path = tmp_path / "run.groups"
    path.write_text(line_of(sleeper.pid, facts.started))

    killed = GroupLedger(path).sweep_leftovers()

    assert killed == 1
    assert sleeper.wait(5) == -9
    assert path.read_text() == ""


def test_another_process_with_the_same_number_is_spared(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    facts = proc.look(sleeper.pid)
    assert facts is not None
    path = tmp_path / "run.groups"
    path.write_text(line_of(sleeper.pid, facts.started - 1))

    assert GroupLedger(path).sweep_leftovers() == 0
    assert is_alive(sleeper)


def test_processes_of_another_boot_are_spared(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    facts = proc.look(sleeper.pid)
    assert facts is not None
    path = tmp_path / "run.groups"
    path.write_text(line_of(sleeper.pid, facts.started, boot_id="another-boot"))

    assert GroupLedger(path).sweep_leftovers() == 0
    assert is_alive(sleeper)


def test_a_process_found_only_by_its_mark_is_swept(mark: str, tmp_path: Path) -> None:
    environment = {"TEST_MARK": mark, "FERMIX_COMMAND": "01ABC"}
    process = subprocess.Popen(["/bin/sleep", "60"], env=environment, start_new_session=True)
    path = tmp_path / "run.groups"
    path.write_text(line_of(4_194_303, 1))

    killed = GroupLedger(path).sweep_leftovers()

    assert killed == 1
    assert process.wait(5) == -9


def test_a_zombie_is_no_reason_to_wait(mark: str, tmp_path: Path) -> None:
    process = subprocess.Popen(["/bin/true"], env={"TEST_MARK": mark})
    while (facts := proc.look(process.pid)) is not None and not facts.is_zombie:
        sleep(0.01)
    path = tmp_path / "run.groups"
    path.write_text(line_of(process.pid, facts.started if facts else 0))

    assert GroupLedger(path).sweep_leftovers() == 0
    process.wait()


@pytest.mark.parametrize("text", ["", "+ torn", "\0\0\0\n", "- nobody\n", "+ a b c d e f\n", "é\n"])
def test_a_damaged_file_sweeps_nothing_and_is_emptied(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.groups"
    path.write_text(text)

    assert GroupLedger(path).sweep_leftovers() == 0
    assert path.read_text() == ""


def test_a_missing_file_is_no_leftover(tmp_path: Path) -> None:
    assert GroupLedger(tmp_path / "run.groups").sweep_leftovers() == 0


def start_sleeper(mark: str) -> Spawned:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        return spawn(
            ["/bin/sleep", "60"],
            cwd="/",
            env={"TEST_MARK": mark},
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
        )
    finally:
        os.close(nothing)


def close(spawned: Spawned) -> None:
    os.close(spawned.monitor_pipe_fd)
    os.close(spawned.status_fd)


def test_a_running_command_stands_in_the_file_until_it_has_ended(mark: str, tmp_path: Path) -> None:
    ledger = GroupLedger(tmp_path / "run.groups")
    spawned = start_sleeper(mark)

    group = ledger.add(spawned, "01ABC", Standing())
    assert (tmp_path / "run.groups").stat().st_mode & 0o777 == 0o600
    assert (
        (tmp_path / "run.groups").read_text().startswith(f"+ 01ABC {proc.boot_id()} {spawned.monitor_pid} ")
    )

    close(spawned)
    ledger.see_off(group, is_ended=False)
    assert ledger.await_farewells(5.0)
    assert (tmp_path / "run.groups").read_text() == ""


def test_the_file_stays_small_while_commands_come_and_go(mark: str, tmp_path: Path) -> None:
    ledger = GroupLedger(tmp_path / "run.groups")
    stays = start_sleeper(mark)
    kept = ledger.add(stays, "01STAYS", Standing())
    for number in range(1500):
        passing = Spawned(stays.monitor_pid + 1_000_000, stays.leader_pid, -1, -1)
        ledger.remove(ledger.add(passing, f"01PASSES{number}", Standing()))

    text = (tmp_path / "run.groups").read_text()
    assert text.startswith("+ 01STAYS ")
    assert text.count("\n") <= 1001

    close(stays)
    ledger.see_off(kept, is_ended=False)
    assert ledger.await_farewells(5.0)


def test_a_process_below_a_command_has_its_turns_standing_but_unattended(mark: str, tmp_path: Path) -> None:
    ledger = GroupLedger(tmp_path / "run.groups")
    spawned = start_sleeper(mark)
    group = ledger.add(spawned, "01ABC", OPERATOR_ATTENDED)

    standing = ledger.standing_of(spawned.leader_pid)

    assert standing == Standing(Trust.OPERATOR, attended=False)
    close(spawned)
    ledger.see_off(group, is_ended=False)
    assert ledger.await_farewells(5.0)


def test_a_process_below_the_daemon_and_no_command_has_the_least_standing(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert GroupLedger(tmp_path / "run.groups").standing_of(sleeper.pid) == Standing()


def test_a_process_of_the_owner_has_no_standing_from_us(tmp_path: Path) -> None:
    ledger = GroupLedger(tmp_path / "run.groups")

    assert ledger.standing_of(os.getppid()) is None
    assert ledger.standing_of(os.getpid()) is None


def test_a_process_that_is_gone_has_the_least_standing_since_nobody_can_tell_whose_it_was(
    tmp_path: Path,
) -> None:
    gone = subprocess.Popen(["/bin/true"])
    gone.wait(10)

    assert GroupLedger(tmp_path / "run.groups").standing_of(gone.pid) == Standing()
