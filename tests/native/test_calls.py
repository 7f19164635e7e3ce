"""Direct system calls, compiled and in pure Python alike."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fermix import native
from fermix.native import _native, fallback

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(params=[_native, fallback], ids=["compiled", "fallback"])
def calls(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def python(code: str) -> str:
    """What a fresh, unpatched Python prints for `code`."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout


def test_the_gate_runs_with_the_compiled_module() -> None:
    assert native.IS_COMPILED
    assert native.NOTICE is None


def test_a_group_is_killed(calls: ModuleType, sleeper: subprocess.Popen[bytes]) -> None:
    calls.kill_pgid(sleeper.pid, signal.SIGTERM)

    assert sleeper.wait(5) == -signal.SIGTERM


def test_a_group_that_is_not_there_is_an_error(calls: ModuleType) -> None:
    with pytest.raises(ProcessLookupError):
        calls.kill_pgid(4_194_303, signal.SIGTERM)


@pytest.mark.parametrize("pgid", [1, 0, -1, -5])
def test_everyone_and_oneself_are_no_groups(calls: ModuleType, pgid: int) -> None:
    with pytest.raises(ValueError, match="above 1"):
        calls.kill_pgid(pgid, 0)


def test_a_pidfd_reads_ready_when_its_process_ends(
    calls: ModuleType, sleeper: subprocess.Popen[bytes]
) -> None:
    fd = calls.pidfd_open(sleeper.pid)
    assert select.select([fd], [], [], 0)[0] == []

    calls.pidfd_send_signal(fd, signal.SIGKILL)

    assert select.select([fd], [], [], 5)[0] == [fd]
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_a_process_that_is_not_there_has_no_pidfd(calls: ModuleType) -> None:
    with pytest.raises(ProcessLookupError):
        calls.pidfd_open(4_194_303)


def test_only_this_very_child_is_reaped(calls: ModuleType) -> None:
    code = f"""
import os, posix, time
from fermix.native import {calls.__name__.rpartition(".")[2]} as calls
pid = posix.posix_spawn("/bin/sh", ["sh", "-c", "sleep 0.2; exit 3"], {{}})
print(calls.reap(pid, block=False), calls.reap(pid, block=True) >> 8)
try:
    calls.reap(pid, block=False)
except ChildProcessError:
    print("gone")
"""
    assert python(code).split() == ["None", "3", "gone"]


def test_a_subreaper_becomes_parent_of_orphans(calls: ModuleType) -> None:
    code = f"""
import os, posix
from fermix.native import {calls.__name__.rpartition(".")[2]} as calls
calls.become_subreaper()
read_end, write_end = os.pipe()
os.set_inheritable(write_end, True)
script = f"(sleep 1 & echo $! >&{{write_end}})"
pid = posix.posix_spawn("/bin/sh", ["sh", "-c", script], {{"PATH": "/bin:/usr/bin"}})
os.waitpid(pid, 0)
orphan = int(os.read(read_end, 20))
print(int(open(f"/proc/{{orphan}}/stat").read().rpartition(")")[2].split()[1]) == os.getpid())
"""
    assert python(code) == "True\n"


def test_parent_death_signal_and_dumpable_reach_the_kernel(calls: ModuleType) -> None:
    code = f"""
import ctypes, os, signal
from fermix.native import {calls.__name__.rpartition(".")[2]} as calls
calls.set_parent_death_signal(signal.SIGUSR1)
calls.set_dumpable(False)
libc, found = ctypes.CDLL(None), ctypes.c_int()
libc.prctl(2, ctypes.byref(found), 0, 0, 0)
print(found.value == signal.SIGUSR1, libc.prctl(3, 0, 0, 0, 0))
"""
    assert python(code) == "True 0\n"


def test_without_the_compiled_module_the_package_says_so() -> None:
    code = """
import sys
sys.modules["fermix.native._native"] = None
from fermix import native
print(native.IS_COMPILED, native.NOTICE)
"""
    said = python(code)

    assert said.startswith("False fermix.native is not compiled")
    assert "pip install -e ." in said
