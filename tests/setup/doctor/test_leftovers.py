"""What a killed fermix leaves: found when nobody serves the home, removed without harm."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fermix.errors import LeaseHeld
from fermix.paths import Home
from fermix.process import proc
from fermix.setup.doctor import lease
from fermix.setup.doctor.finding import State
from fermix.setup.doctor.leftovers import look
from fermix.setup.doctor.scene import Scene
from tests.setup.doctor.conftest import NOW_MS, leave_socket, one, repair

SceneMaker = Callable[..., Scene]
DAY_S = 86_400


@contextmanager
def held(home: Home, text: str) -> Iterator[int]:
    """Another process holds the lease, whatever the file says."""
    home.lease.write_text(text)
    script = "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,fcntl.LOCK_EX);print();sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(home.lease)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.communicate(timeout=10)


def own_line(pid: int) -> str:
    facts = proc.look(pid)
    assert facts is not None
    return f"{pid} full {facts.started}\n"


def age(path: Path, days: float) -> None:
    made_s = NOW_MS / 1000 - days * DAY_S
    os.utime(path, (made_s, made_s))


def test_clean_home_is_good(scene: SceneMaker) -> None:
    assert [each.state for each in look(scene())] == [State.OK]
    assert [each.state for each in lease.look(scene())] == [State.OK]


def test_stale_pid_file_and_socket_are_removed(scene: SceneMaker, home: Home) -> None:
    home.pid_file.write_text("999999\n")
    leave_socket(home.socket)

    findings = look(scene())

    assert [each.state for each in findings] == [State.WARN, State.WARN]
    assert "'999999'" in findings[0].saw
    assert [each.hint for each in findings] == [f"rm {home.pid_file}", f"rm {home.socket}"]
    for each in findings:
        repair(each)
    assert not home.pid_file.exists() and not home.socket.exists()
    assert [each.state for each in look(scene())] == [State.OK]


def test_what_a_served_home_needs_is_left(scene: SceneMaker, home: Home) -> None:
    home.pid_file.write_text("999999\n")
    leave_socket(home.socket)
    findings = look(scene())

    with held(home, own_line(os.getpid())):
        assert [each.state for each in look(scene())] == [State.OK]
        for each in findings:
            assert each.fix is not None
            with pytest.raises(LeaseHeld):
                each.fix()

    assert home.pid_file.exists() and home.socket.exists()


def test_socket_somebody_answers_on_is_left(scene: SceneMaker, home: Home) -> None:
    leave_socket(home.socket)
    finding = one(look(scene()), State.WARN)
    home.socket.unlink()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        listener.listen()
        assert one(look(scene()), State.FAIL).fix is None
        repair(finding)
        assert home.socket.exists()


def test_file_in_the_sockets_place_is_named_and_left(scene: SceneMaker, home: Home) -> None:
    home.socket.write_text("mine")

    finding = one(look(scene()), State.FAIL)

    assert finding.hint == f"mv {home.socket} {home.socket}.aside"
    assert finding.fix is None


def test_half_written_files_and_old_uploads_are_removed(scene: SceneMaker, home: Home) -> None:
    old = [
        home.root / ".config.toml.0123456789ab.tmp",
        home.secrets / ".key.0123456789ab.tmp",
        home.models / "big.gguf.part",
        home.blobs / "01J00000000000000000000000",
        home.root / ".fermix.pid.new",
    ]
    fresh = [home.root / ".config.toml.ba9876543210.tmp", home.models / "new.part", home.blobs / "01K"]
    for path in (*old, *fresh):
        path.write_text("x")
        age(path, 2 if path in old else 0)

    for finding in look(scene()):
        repair(finding)

    assert [path for path in old if path.exists()] == []
    assert [path for path in fresh if not path.exists()] == []


def test_file_that_was_taken_up_again_is_left(scene: SceneMaker, home: Home) -> None:
    path = home.models / "big.gguf.part"
    path.write_text("x")
    age(path, 2)
    finding = one(look(scene()), State.WARN)
    path.write_text("xy")

    repair(finding)

    assert path.read_text() == "xy"


def test_surviving_process_of_a_killed_daemon_is_named_and_ended(scene: SceneMaker, home: Home) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "FERMIX_COMMAND": "left-1"},
    )
    facts = proc.look(command.pid)
    assert facts is not None
    home.groups.write_text(f"+ left-1 {proc.boot_id()} 999999 1 {command.pid} {facts.started}\n")

    finding = one(look(scene()), State.FAIL)

    assert f"(pid {command.pid})" in finding.saw
    assert finding.hint == f"kill -9 {command.pid}"
    repair(finding)
    assert command.wait(10) == -9
    assert [each.state for each in look(scene())] == [State.OK]
    assert command.stdin is not None
    command.stdin.close()


def test_process_that_took_over_a_number_is_spared(scene: SceneMaker, home: Home) -> None:
    home.groups.write_text(
        f"+ a {proc.boot_id()} 999999 1 {os.getppid()} 1\n+ b other-boot 999999 1 {os.getppid()} 1\n+ cut"
    )

    assert [each.state for each in look(scene())] == [State.OK]


def test_lease_that_outlived_its_daemon_names_who_holds_it(scene: SceneMaker, home: Home) -> None:
    with held(home, "999999 full 1\n") as pid:
        finding = one(lease.look(scene()), State.FAIL)

    assert "pid 999999, which is gone" in finding.saw
    assert finding.hint == f"kill {pid}"
    assert finding.fix is None
    assert [each.state for each in lease.look(scene())] == [State.OK]


def test_lease_of_a_living_daemon_is_good(scene: SceneMaker, home: Home) -> None:
    with held(home, own_line(os.getpid())):
        assert f"pid {os.getpid()}, full" in one(lease.look(scene()), State.OK).saw


def test_looking_at_the_lease_does_not_take_it(scene: SceneMaker, home: Home) -> None:
    home.lease.write_text("999999 full 1\n")

    lease.look(scene())

    with home.lease.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
