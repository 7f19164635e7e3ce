"""What a running daemon is found by comes back when somebody removes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fermix.daemon.places import Places


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "run.lock"
    path.write_text("1 full 1\n")
    return path


def test_removed_file_comes_back_as_the_same_file(tmp_path: Path, lock: Path) -> None:
    inode = lock.stat().st_ino
    places = Places(tmp_path / ".kept", [lock])

    lock.unlink()
    places.look()

    assert lock.stat().st_ino == inode


def test_file_that_somebody_put_there_instead_stays(tmp_path: Path, lock: Path) -> None:
    places = Places(tmp_path / ".kept", [lock])
    lock.unlink()
    lock.write_text("another's")

    places.look()

    assert lock.read_text() == "another's"


def test_leftovers_of_a_killed_daemon_are_in_nobodys_way(tmp_path: Path, lock: Path) -> None:
    Places(tmp_path / ".kept", [lock])
    lock.unlink()
    lock.write_text("2 full 2\n")

    places = Places(tmp_path / ".kept", [lock])
    lock.unlink()
    places.look()

    assert lock.read_text() == "2 full 2\n"
    places.close()
    assert list(tmp_path.iterdir()) == [lock]


def test_home_that_is_gone_is_no_failure(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "run.lock").touch()
    places = Places(home / ".kept", [home / "run.lock"])

    shutil.rmtree(home)
    places.look()
    places.close()

    assert not home.exists()


def test_running_daemon_is_found_again_after_its_files_were_removed(daemon, until) -> None:
    daemon.start()
    worker = daemon.ping()
    names = ("daemon.sock", "run.lock", "fermix.pid")

    for name in names:
        (daemon.home / name).unlink()

    until(lambda: all((daemon.home / name).exists() for name in names))
    assert daemon.ping() == worker
    second = daemon.spawn()
    assert "Another fermix" in second.communicate(timeout=15)[0]
    assert "'" + str(daemon.home / "daemon.sock") + "' was removed" in daemon.log()


def test_stopped_daemon_leaves_no_second_names(daemon) -> None:
    process = daemon.start()

    process.terminate()
    process.wait(15)

    assert not (daemon.home / ".kept").exists()
    assert not (daemon.home / "daemon.sock").exists()
