"""Who may serve a home: one daemon at a time, from its first moment to its last process."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

import psutil
import pytest

from fermix.daemon.lease import Lease
from fermix.daemon.mode import Mode
from fermix.errors import HomeUnsafe, LeaseHeld


def take(
    path: Path, mode: Mode = Mode.FULL, *, wait_s: float = 0.2, leave_s: float = 1.0, ask=None
) -> Lease:
    lease = Lease(path)
    lease.take(mode, wait_s=wait_s, leave_s=leave_s, ask_to_leave=ask or (lambda holder: None))
    return lease


def test_a_held_lease_names_its_holder_and_the_way_out(tmp_path):
    held = take(tmp_path / "run.lock")

    with pytest.raises(
        LeaseHeld, match=rf"Another fermix \(pid {os.getpid()}\) serves the home"
    ) as refused:
        take(tmp_path / "run.lock", wait_s=30.0)

    assert refused.value.hint == "Stop it first with: fermix stop"
    held.release()
    take(tmp_path / "run.lock").release()


def test_a_private_start_never_asks_anyone_to_leave(tmp_path):
    held = take(tmp_path / "run.lock", Mode.PRIVATE)
    asked = []

    with pytest.raises(LeaseHeld):
        take(tmp_path / "run.lock", Mode.PRIVATE, ask=asked.append)

    assert asked == []
    held.release()


def test_a_full_start_asks_a_private_holder_to_leave_and_waits_for_it(tmp_path):
    held = take(tmp_path / "run.lock", Mode.PRIVATE)

    lease = take(tmp_path / "run.lock", ask=lambda holder: held.release())

    assert lease.holder().mode is Mode.FULL
    lease.release()


def test_a_private_holder_that_does_not_leave_is_named_after_a_while(tmp_path):
    held = take(tmp_path / "run.lock", Mode.PRIVATE)
    asked = []

    with pytest.raises(LeaseHeld):
        take(tmp_path / "run.lock", leave_s=0.1, ask=asked.append)

    assert len(asked) == 1
    held.release()


@pytest.mark.parametrize(
    "left_by_the_dead", ["999999999 full 1\n", "", "\0garbage\xff 1", f"{os.getpid()} full 1\n"]
)
def test_the_last_processes_of_a_dead_holder_are_waited_for(tmp_path, left_by_the_dead):
    path = tmp_path / "run.lock"
    path.write_text(left_by_the_dead, encoding="latin-1")
    leftover = os.open(path, os.O_RDWR)
    fcntl.flock(leftover, fcntl.LOCK_EX)

    started = time.monotonic()
    with pytest.raises(LeaseHeld, match="Another fermix"):
        take(path, wait_s=0.2)
    assert time.monotonic() - started >= 0.2

    os.close(leftover)
    take(path).release()


def test_the_lease_is_private_and_not_followed_through_a_link(tmp_path):
    take(tmp_path / "run.lock").release()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(HomeUnsafe, match="cannot be opened"):
        take(tmp_path / "link")

    assert (tmp_path / "run.lock").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "elsewhere").exists()


def test_a_second_start_is_refused_while_the_first_still_warms_up(daemon, until):
    first = daemon.spawn("slow")
    until(lambda: (daemon.home / "run.lock").exists() and (daemon.home / "run.lock").read_text())

    second = daemon.spawn()
    output, _ = second.communicate(timeout=10)

    assert second.returncode == 1
    assert f"Another fermix (pid {first.pid}) serves the home" in output
    assert "Stop it first with: fermix stop" in output
    until(lambda: daemon.ping() is not None)
    assert daemon.arbiter == first.pid


def test_of_several_starts_at_once_exactly_one_serves(daemon, until):
    starts = [daemon.spawn() for _ in range(4)]

    until(lambda: sum(start.poll() == 1 for start in starts) == 3)

    winner = next(start for start in starts if start.poll() is None)
    until(lambda: daemon.ping() is not None)
    assert daemon.arbiter == winner.pid


def test_a_full_daemon_takes_over_from_a_private_one(daemon, until):
    private = daemon.start(mode="private")

    full = daemon.spawn()
    # The stub answers no protocol, so what the real control does on the question stands here.
    until(lambda: "asked" in daemon.diary())
    private.terminate()
    until(lambda: daemon.ping() is not None and daemon.arbiter == full.pid)

    assert private.wait(timeout=5) == 0


def test_fifty_kills_and_starts_leave_nothing_behind(daemon, until, is_alive):
    pids: set[int] = set()
    for turn in range(50):
        process = daemon.spawn()
        if turn % 5 == 0:
            until(lambda: daemon.ping() is not None)
        else:
            time.sleep(turn * 7 % 50 / 150)  # anywhere between exec and ready
        pids |= {process.pid} | {child.pid for child in children_of(process.pid)}
        process.kill()
        process.communicate(timeout=5)

    until(lambda: not any(map(is_alive, pids)), 3.0)
    process = daemon.start()
    process.terminate()
    assert process.wait(timeout=5) == 0
    left = {path.name for path in daemon.home.iterdir()}
    assert left <= {"config.toml", "run.lock", "diary", "logs", "secrets", "workspace", "blobs", "models"}
    assert [path.name for path in (daemon.home / "logs").iterdir()] == ["fermix.log"]


def children_of(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def test_a_start_finds_a_plain_file_where_the_socket_should_be_and_leaves_it(daemon):
    (daemon.home / "daemon.sock").write_text("precious")

    process = daemon.spawn()
    output, _ = process.communicate(timeout=10)

    assert process.returncode == 1
    assert f"'{daemon.home}/daemon.sock' is in the way. Expected a socket or nothing." in output
    assert (daemon.home / "daemon.sock").read_text() == "precious"


def test_a_stale_socket_is_replaced_and_a_foreign_answering_one_is_not(daemon):
    path = str(daemon.home / "daemon.sock")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    process = daemon.start()
    process.terminate()
    process.wait(timeout=5)

    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(path)
        foreign.listen()
        process = daemon.spawn()
        output, _ = process.communicate(timeout=10)

    assert process.returncode == 1
    assert f"Another program answers on '{path}'" in output


def test_a_home_with_a_very_long_path_gets_its_socket(daemon, until):
    daemon.home = daemon.home / ("deep" * 30)
    daemon.home.mkdir(mode=0o700)
    daemon.configure()

    process = daemon.spawn()
    until(lambda: "Listens on" in daemon.log() or process.poll() is not None)

    assert (daemon.home / "daemon.sock").exists()
    assert len(str(daemon.home / "daemon.sock")) > 107
    until(lambda: daemon.get("/health/ready")[0] == 200)


def test_a_taken_port_is_named_with_the_way_to_another(daemon):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        daemon.configure(http={"port": port})
        process = daemon.spawn()
        output, _ = process.communicate(timeout=10)

    assert process.returncode == 1
    assert f"Cannot listen on '127.0.0.1:{port}'" in output
    assert "fermix config set http.port" in output
    assert not (daemon.home / "daemon.sock").exists()
