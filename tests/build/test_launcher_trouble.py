"""The launcher copes with broken caches, bad places and damaged files, and says what it could not do."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Packer

REPAIR = "; repair: set FERMIX_RUNTIME_DIR=/a/folder/of/yours\n"


def cut(version: Path) -> None:
    (version / "lib/deep/data").unlink()


def change(version: Path) -> None:
    (version / "fermix").write_text("#!/bin/sh\necho evil\n")


def change_in_place(version: Path) -> None:
    with (version / "lib/deep/data").open("r+b") as file:
        file.write(b"other")


def open_up(version: Path) -> None:
    (version / "fermix").chmod(0o666)


def forget(version: Path) -> None:
    (version / ".manifest").unlink()


def spoil(version: Path) -> None:
    (version / ".manifest").write_bytes(b"\xff" * 999)


def share(version: Path) -> None:
    version.chmod(0o777)


@pytest.mark.parametrize("harm", [cut, change, change_in_place, open_up, forget, spoil, share])
def test_broken_cache_is_unpacked_again(pack: Packer, harm: Callable[[Path], None]) -> None:
    launched = pack("one")
    launched.run()
    (version,) = launched.versions()
    time.sleep(0.01)  # a change within the same tick of the file system's clock has the same time
    harm(version)
    done = launched.run("again")
    assert (done.stdout, done.stderr) == ("one again\n", "")
    assert (version / "lib/deep/data").stat().st_size == 1000
    assert version.stat().st_mode & 0o077 == 0
    assert launched.leftovers() == []


def test_fifty_killed_first_starts_leave_nothing_behind(pack: Packer) -> None:
    launched = pack("one", size_bytes=30_000_000)
    chance = random.Random(184)
    for _ in range(50):
        process = launched.start()
        time.sleep(chance.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    assert len(launched.leftovers()) <= 1
    assert launched.run("after").stdout == "one after\n"
    assert len(launched.versions()) == 1
    assert launched.leftovers() == []


@pytest.mark.parametrize("is_unpacked", [False, True])
def test_noexec_mount_is_passed_over(pack: Packer, tmp_path: Path, is_unpacked: bool) -> None:
    launched = pack("one")
    launched.cache.mkdir(mode=0o700)
    if is_unpacked:
        launched.run()
    environment = {
        "FERMIX_RUNTIME_DIR": str(launched.cache),
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
    }
    place = f"'{launched.cache}'"
    mounts = f"mount --bind {place} {place}; mount -o remount,bind,noexec {place}"
    done = launched.run(mounts=mounts, environment=environment)
    assert done.stdout == "one \n"
    assert (
        "Permission denied" if is_unpacked else "programs may not run there (mounted noexec)"
    ) in done.stderr
    assert done.stderr.endswith(f"; using {tmp_path}/home/.cache/fermix\n")


@pytest.mark.parametrize("limit", ["size=4m", "size=20m,nr_inodes=6"])
def test_full_disk_is_passed_over_and_nothing_is_left_there(
    pack: Packer, tmp_path: Path, limit: str
) -> None:
    launched = pack("one", size_bytes=8_000_000)
    launched.cache.mkdir()
    environment = {
        "FERMIX_RUNTIME_DIR": str(launched.cache),
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
    }
    mounts = f"mount -t tmpfs -o mode=700,{limit} tmpfs '{launched.cache}'"
    done = launched.run(mounts=f'{mounts}\n"$0" first\nls -A "{launched.cache}"', environment=environment)
    assert done.stdout.splitlines() == ["one first", ".lock", "one "]
    assert "o space left" in done.stderr
    assert f"; using {tmp_path}/home/.cache/fermix\n" in done.stderr


FILL_ALL = """
cp "$0" /dev/shm/fermix-test-$$
for place in /tmp /var/tmp; do mount -t tmpfs -o size=4m,mode=1777 tmpfs $place; done
trap 'rm -f /dev/shm/fermix-test-$$' EXIT
set +e
/dev/shm/fermix-test-$$
exit $?
"""


def test_full_disk_everywhere_is_one_clear_line(pack: Packer) -> None:
    launched = pack("one", size_bytes=8_000_000)
    done = launched.run(mounts=FILL_ALL, environment={"PATH": os.environ["PATH"], "HOME": "/proc/none"})
    assert done.returncode == 1
    assert done.stderr.startswith("fermix: cannot unpack itself: '/proc/none/.cache/fermix': No such file")
    assert (
        "'/tmp/fermix-0': no space left: 9 MB needed, 4 MB free; '/var/tmp/fermix-0': no space"
        in done.stderr
    )
    assert done.stderr.endswith(REPAIR)
    assert done.stderr.count("\n") == 1


def test_read_only_home_is_passed_over(pack: Packer, tmp_path: Path) -> None:
    launched = pack("one")
    home = tmp_path / "home"
    home.mkdir()
    mounts = f"mount -t tmpfs -o mode=700,ro tmpfs '{home}'\nmount -t tmpfs -o mode=1777 tmpfs /var/tmp"
    (tmp_path / "bin").mkdir()
    done = launched.run(mounts=mounts, environment={"PATH": os.environ["PATH"], "HOME": str(home)})
    assert (done.stdout, done.stderr) == ("one \n", "")


def test_unpacked_version_is_used_from_a_read_only_place(pack: Packer) -> None:
    launched = pack("one")
    launched.run()
    done = launched.run(
        mounts=f"mount --bind '{launched.cache}' '{launched.cache}'; "
        f"mount -o remount,bind,ro '{launched.cache}'"
    )
    assert (done.stdout, done.stderr) == ("one \n", "")


def test_place_that_others_can_write_is_refused(pack: Packer, tmp_path: Path) -> None:
    launched = pack("one")
    launched.cache.mkdir()
    launched.cache.chmod(0o777)
    environment = {
        "FERMIX_RUNTIME_DIR": str(launched.cache),
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
    }
    done = launched.run(environment=environment)
    assert done.stdout == "one \n"
    assert f"fermix: '{launched.cache}' can be written by others (mode 777); using " in done.stderr
    assert launched.versions() == []


def test_place_of_another_user_is_refused(pack: Packer, tmp_path: Path) -> None:
    launched = pack("one")
    place = launched.cache
    if os.geteuid() == 0:
        place.mkdir()
        os.chown(place, 12345, 12345)
    else:
        place = Path("/usr")
    environment = {"FERMIX_RUNTIME_DIR": str(place), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    assert (
        f"fermix: '{place}' belongs to another user; using " in launched.run(environment=environment).stderr
    )


def test_symbolic_link_as_place_is_refused(pack: Packer, tmp_path: Path) -> None:
    launched = pack("one")
    (tmp_path / "real").mkdir(mode=0o700)
    launched.cache.symlink_to(tmp_path / "real")
    environment = {"XDG_CACHE_HOME": str(tmp_path), "FERMIX_RUNTIME_DIR": str(launched.cache)}
    assert f"'{launched.cache}' is not a directory; using " in launched.run(environment=environment).stderr


def test_relative_place_is_refused(pack: Packer, tmp_path: Path) -> None:
    done = pack("one").run(environment={"FERMIX_RUNTIME_DIR": "cache", "HOME": str(tmp_path)})
    assert done.stdout == "one \n"
    assert "FERMIX_RUNTIME_DIR='cache' is not an absolute path" in done.stderr


@pytest.mark.parametrize("where", [0.3, 0.6, 0.95])
def test_damaged_download_is_refused_whole(pack: Packer, launcher: Path, where: float) -> None:
    launched = pack("one", size_bytes=100_000)
    stub = launcher.stat().st_size
    content = bytearray(launched.executable.read_bytes())
    payload = len(content) - stub - 100
    content[stub + int(payload * where)] ^= 0x55
    launched.executable.write_bytes(content)
    done = launched.run()
    assert done.returncode == 1
    assert "the payload is damaged; download fermix again" in done.stderr
    assert launched.versions() == []
    assert launched.leftovers() == []


def test_cut_download_is_refused(pack: Packer) -> None:
    launched = pack("one")
    os.truncate(launched.executable, launched.executable.stat().st_size - 700)
    done = launched.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "fermix: this file was cut; download fermix again\n"
