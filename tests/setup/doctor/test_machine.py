"""What lies around the home: disk, kernel, ports, programs, versions."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from fermix.errors import ConfigError
from fermix.paths import Home
from fermix.setup.doctor import disk, kernel, native, ports, programs, versions
from fermix.setup.doctor.finding import State
from fermix.setup.doctor.scene import Scene, Wanted
from tests.setup.doctor.conftest import one

SceneMaker = Callable[..., Scene]


def test_disk_with_room_is_good_also_before_the_home_is_made(scene: SceneMaker, tmp_path: Path) -> None:
    assert [each.state for each in disk.look(scene())] == [State.OK]
    assert str(tmp_path) in one(disk.look(scene(home=Home(tmp_path / "a/b"))), State.OK).saw


def test_read_only_disk_is_named(scene: SceneMaker) -> None:
    finding = one(disk.look(scene(home=Home(Path("/proc/none")))), State.FAIL)

    assert finding.hint


def test_kernel_abilities_are_named_and_what_is_missed_without_them(scene: SceneMaker) -> None:
    findings = kernel.look(scene())

    told = findings[0].saw
    for name in ("Landlock", "seccomp", "user namespaces", "pidfd", "subreaper"):
        assert name in told or any(name in each.saw and each.hint for each in findings[1:])
    assert all(each.state is State.WARN for each in findings[1:])


def test_native_module_or_its_stand_in_is_told(scene: SceneMaker) -> None:
    finding = native.look(scene())[0]

    assert finding.state is State.OK or "pip install" in (finding.hint or "")


def test_port_held_by_another_program_names_it_and_a_free_one(scene: SceneMaker) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        finding = one(ports.look(scene(wanted=lambda: Wanted(http_port=port))), State.FAIL)

        assert f"Port {port}" in finding.saw and f"(pid {os.getpid()})" in finding.saw
        assert (finding.hint or "").startswith("fermix config set http.port ")
        running = {"http": f"127.0.0.1:{port}", "pid": os.getpid(), "arbiter_pid": os.getpid()}
        own = scene(wanted=lambda: Wanted(http_port=port), status=running)
        assert [each.state for each in ports.look(own)] == [State.OK]


def test_port_on_another_address_is_no_matter(scene: SceneMaker) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.2", 0))
        other.listen()
        port = other.getsockname()[1]

        assert [each.state for each in ports.look(scene(wanted=lambda: Wanted(http_port=port)))] == [
            State.OK
        ]


def test_address_that_may_not_be_served_is_told(scene: SceneMaker) -> None:
    problem = ConfigError("'http.host' is '0.0.0.0'.", hint="fermix config set http.host 127.0.0.1")

    finding = one(ports.look(scene(http_problem=lambda: problem)), State.FAIL)

    assert (finding.saw, finding.hint) == (problem.message, problem.hint)


def test_guarded_address_open_to_others_is_pointed_at(scene: SceneMaker) -> None:
    finding = one(ports.look(scene(wanted=lambda: Wanted(http_host="192.0.2.1", http_port=0))), State.WARN)

    assert "other machines reach fermix" in finding.saw
    assert finding.hint == "fermix tokens list"


def test_daemon_that_listens_for_others_is_named(scene: SceneMaker) -> None:
    running = scene(status={"http": None, "pid": 7, "arbiter_pid": 6})
    wide = ports.Listener("192.0.2.1", 4030, 7)

    finding = one(ports.judged(running, [wide]), State.FAIL)

    assert "192.0.2.1:4030, open to others" in finding.saw
    assert [each.state for each in ports.judged(running, [ports.Listener("192.0.2.1", 22, 1)])] == [
        State.OK
    ]


def test_missing_and_wrong_model_files_are_named(scene: SceneMaker, home: Home) -> None:
    named = scene(wanted=lambda: Wanted(model="mine"))

    missing = one(programs.look(named), State.WARN)
    (home.models / "mine.gguf").write_bytes(b"<html>")
    wrong = one(programs.look(named), State.FAIL)
    (home.models / "mine.gguf").write_bytes(b"GGUF\3\0\0\0")
    cut_off = one(programs.look(named), State.FAIL)

    assert "mine.gguf" in missing.saw and "mine.gguf" in wrong.saw
    assert (missing.hint, wrong.hint) == ("fermix models list", "fermix models remove mine --force")
    assert "cut off" in cut_off.saw


def test_model_of_a_provider_elsewhere_is_not_looked_for(scene: SceneMaker) -> None:
    assert [
        each.state for each in programs.look(scene(wanted=lambda: Wanted(provider="mine", model="far")))
    ] == [State.OK]


def test_missing_programs_are_named(scene: SceneMaker, tmp_path: Path) -> None:
    bare = scene(environment={"HOME": str(tmp_path), "PATH": str(tmp_path)}, wanted=lambda: None)

    assert [each.hint for each in programs.look(bare)] == [
        "sudo apt-get install dash",
        "sudo apt-get install git",
    ]


@pytest.fixture
def on_path(tmp_path: Path) -> Callable[[str], Path]:
    """Puts a `fermix` that prints this on a PATH of its own."""

    def put(script: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "fermix").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "fermix").chmod(0o755)
        return folder

    return put


@pytest.mark.parametrize("script", ["echo fermix 0.0.9", "exit 3"])
def test_other_fermix_in_the_shell_is_named(
    scene: SceneMaker, on_path: Callable[[str], Path], script: str
) -> None:
    folder = on_path(script)

    finding = one(versions.look(scene(environment={"PATH": f"{folder}:/usr/bin:/bin"})), State.WARN)

    assert str(folder / "fermix") in finding.saw
    assert "type -a fermix" in (finding.hint or "")


def test_same_fermix_in_the_shell_is_good(scene: SceneMaker, on_path: Callable[[str], Path]) -> None:
    folder = on_path("echo fermix 0.1.0")

    assert [
        each.state for each in versions.look(scene(environment={"PATH": f"{folder}:/usr/bin:/bin"}))
    ] == [State.OK]


def test_older_daemon_is_named(scene: SceneMaker) -> None:
    finding = one(versions.look(scene(status={"version": "0.0.9"})), State.WARN)

    assert finding.hint == "fermix restart"
