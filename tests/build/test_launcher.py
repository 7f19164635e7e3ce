"""The launcher unpacks itself once and becomes the program."""

from __future__ import annotations

import os
import stat
import subprocess

from .conftest import Packer, age


def test_first_start_unpacks_and_becomes_the_program(pack: Packer) -> None:
    launched = pack("one")
    done = launched.run("hello", "world")
    assert (done.returncode, done.stdout, done.stderr) == (0, "one hello world\n", "")
    assert launched.run("fail").returncode == 7
    (version,) = launched.versions()
    assert stat.S_IMODE(version.stat().st_mode) == 0o700
    assert (version / "lib/link").resolve() == version / "lib/deep/data"


def test_second_start_unpacks_nothing(pack: Packer) -> None:
    launched = pack("one")
    launched.run()
    (version,) = launched.versions()
    before = (version / "lib/deep/data").stat()
    launched.run()
    after = (version / "lib/deep/data").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_program_learns_where_its_executable_is_and_nothing_else_changes(pack: Packer) -> None:
    launched = pack("one")
    given = {
        "FERMIX_RUNTIME_DIR": str(launched.cache),
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": "/of/mine",
    }
    lines = launched.run("environment", environment=given).stdout.splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert seen.pop("FERMIX_EXE") == str(launched.executable)
    assert seen.pop("FERMIX_RUNTIME_FD").isdigit()
    assert {name: seen.get(name) for name in given} == given
    assert set(seen) <= {*given, "PWD", "_", "SHLVL", "OLDPWD"}
    mask = os.umask(0o022)
    os.umask(mask)
    assert int(launched.run("umask").stdout.split()[0], 8) == mask


def test_twenty_first_starts_at_once_all_succeed(pack: Packer) -> None:
    launched = pack("one", size_bytes=5_000_000)
    processes = [launched.start(str(number)) for number in range(20)]
    results = [process.communicate(timeout=60) for process in processes]
    assert [out for out, _ in results] == [f"one {number}\n" for number in range(20)]
    assert [err for _, err in results] == [""] * 20
    assert len(launched.versions()) == 1
    assert launched.leftovers() == []


def test_unpack_prints_the_directory_of_a_segment(pack: Packer) -> None:
    launched = pack("one", segments=("program", "model"))
    done = launched.run("--unpack", "model")
    assert done.returncode == 0
    (version,) = launched.versions()
    assert done.stdout == f"{version}\n"
    assert version.name.startswith("model-")
    assert (version / "lib/deep/data").stat().st_size == 1000


def test_unpack_of_a_segment_that_is_not_there_says_so(pack: Packer) -> None:
    done = pack("one").run("--unpack", "model")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "fermix: this executable carries no 'model'; the full one does\n"


def test_unused_old_version_is_removed_but_never_under_a_running_one(pack: Packer) -> None:
    old, new, newest = pack("old"), pack("new"), pack("newest")
    running = old.start("wait")
    old.run()
    (version,) = old.versions()
    age(version, days=30)
    new.run()
    assert version in old.versions()
    running.kill()
    running.wait(timeout=10)
    newest.run()
    assert version not in old.versions()
    assert len(old.versions()) == 2


def test_recently_used_old_version_stays(pack: Packer) -> None:
    old, new = pack("old"), pack("new")
    old.run()
    (version,) = old.versions()
    age(version, days=2)
    new.run()
    assert version in old.versions()


def test_only_the_last_few_versions_stay(pack: Packer) -> None:
    versions = [pack(str(number)) for number in range(6)]
    for days, launched in zip(range(6, 0, -1), versions, strict=True):
        before = launched.versions() if launched.cache.exists() else []
        launched.run()
        for version in set(launched.versions()) - set(before):
            age(version, days)
    assert len(versions[0].versions()) == 4


def test_use_of_a_version_is_remembered(pack: Packer) -> None:
    old, new = pack("old"), pack("new")
    old.run()
    (version,) = old.versions()
    age(version, days=30)
    old.run()
    new.run()
    assert version in old.versions()


def test_closed_streams_are_not_taken_by_files_of_the_launcher(pack: Packer) -> None:
    launched = pack("one")
    done = subprocess.run(
        ["sh", "-c", '"$0" streams <&- 2>&-', str(launched.executable)],
        env={"FERMIX_RUNTIME_DIR": str(launched.cache), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    standard_input, output, errors = done.stdout.splitlines()
    assert (standard_input, output[:5], errors) == ("/dev/null", "pipe:", "/dev/null")
