"""`spawn`: what a command gets, what its monitor says, and that both backends speak alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from posix import close  # os.close is gevent's here, which waits for its hub

import pytest

from fermix.native import (
    Limits,
    Record,
    RecordKind,
    RecordReader,
    Spawned,
    order_kill,
    order_terminate,
    reap,
    spawn,
)
from fermix.native.spawning import find_program

CHECKOUT = Path(__file__).parents[2]


def start(*argv: str, cwd: str = "/", limits: Limits | None = None) -> Spawned:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        return spawn(
            argv,
            cwd=cwd,
            env={"PATH": os.defpath},
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            limits=limits,
        )
    finally:
        close(nothing)


def finish(spawned: Spawned) -> list[Record]:
    """All the monitor says until it has ended."""
    reader, records = RecordReader(), []
    while received := os.read(spawned.status_fd, 5):
        records += reader.feed(received)
    close(spawned.status_fd)
    close(spawned.monitor_pipe_fd)
    assert reap(spawned.monitor_pid, block=True) == 0
    return records


def test_the_monitor_reports_the_end_and_then_that_all_is_swept() -> None:
    records = finish(start("sh", "-c", "exit 3"))

    assert [record.kind for record in records] == [RecordKind.ENDED, RecordKind.SWEPT]
    assert os.waitstatus_to_exitcode(records[0].value) == 3


def test_the_leader_has_its_own_session_and_group() -> None:
    spawned = start("sleep", "60")

    assert os.getsid(spawned.leader_pid) == os.getpgid(spawned.leader_pid) == spawned.leader_pid
    assert os.getsid(spawned.monitor_pid) == spawned.monitor_pid
    order_kill(spawned)
    assert os.WTERMSIG(finish(spawned)[0].value) == signal.SIGKILL


def test_closing_the_pipe_is_the_order_to_kill() -> None:
    spawned = start("sh", "-c", "trap '' TERM; sleep 60")

    close(spawned.monitor_pipe_fd)

    records = RecordReader().feed(os.read(spawned.status_fd, 100))
    assert os.WTERMSIG(records[0].value) == signal.SIGKILL
    close(spawned.status_fd)
    reap(spawned.monitor_pid, block=True)


def test_sigterm_goes_out_once_and_may_be_obeyed() -> None:
    spawned = start("sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.02; done")
    time.sleep(0.1)

    order_terminate(spawned)

    assert os.waitstatus_to_exitcode(finish(spawned)[0].value) == 9


def test_orders_to_a_monitor_that_has_ended_do_nothing() -> None:
    spawned = start("true")
    while os.read(spawned.status_fd, 100):
        pass

    order_terminate(spawned)
    order_kill(spawned)

    finish(spawned)


@pytest.mark.parametrize(
    ("argv", "cwd", "named"),
    [(("/no/such",), "/", "/no/such"), (("true",), "/no/such", "/no/such"), (("no-such",), "/", "no-such")],
)
def test_a_failed_exec_names_what_was_missing(argv: tuple[str, ...], cwd: str, named: str) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        start(*argv, cwd=cwd)

    assert caught.value.filename == named


def test_a_file_that_is_no_program_is_told_apart_from_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)

    with pytest.raises(OSError, match="Exec format error"):
        start(str(tmp_path / "text"))


def test_failed_starts_leave_neither_children_nor_descriptors() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(FileNotFoundError):
            start("/no/such")

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    comms = [Path(f"/proc/{pid}/comm") for pid in Path("/proc/thread-self/children").read_text().split()]
    assert "fermix-monitor\n" not in [comm.read_text() for comm in comms]


def test_values_no_kernel_takes_are_refused_before_the_fork() -> None:
    with pytest.raises(ValueError, match="NUL"):
        start("echo", "a\0b")
    with pytest.raises(ValueError, match="at least a program"):
        start()
    with pytest.raises(ValueError, match="at least 0"):
        start("true", limits=Limits(memory_bytes=-5))


def test_a_program_is_found_as_a_shell_finds_it(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    (tmp_path / "tool").write_text("")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "folder").mkdir()

    assert find_program("tool", f"/no/such:{tmp_path}", "/") == str(tmp_path / "tool")
    assert find_program("./tool", "", "/") == "./tool"
    for name in ("plain", "folder", ""):
        with pytest.raises(FileNotFoundError):
            find_program(name, str(tmp_path), "/")


def test_records_cut_anywhere_are_put_together() -> None:
    reader = RecordReader()
    text = b"".join(kind.to_bytes(4, sys.byteorder) + bytes(8) for kind in (3, 4))

    kinds = [record.kind for byte in text for record in reader.feed(bytes([byte]))]

    assert kinds == [RecordKind.ENDED, RecordKind.SWEPT]


def test_many_threads_spawn_while_others_allocate() -> None:
    code = """
import os, threading
from fermix.native import spawn, reap
null = os.open("/dev/null", os.O_RDWR)
stop, counts = threading.Event(), []
def allocate():
    while not stop.is_set():
        [bytes(1000) for _ in range(1000)]
def work():
    for _ in range(100):
        s = spawn(["/bin/sh", "-c", "exit 3"], cwd="/", env={}, stdin=null, stdout=null, stderr=null)
        text = b""
        while part := os.read(s.status_fd, 100):
            text += part
        os.close(s.status_fd), os.close(s.monitor_pipe_fd)
        reap(s.monitor_pid, block=True)
        counts.append(text[4:8] == (3 << 8).to_bytes(4, "little"))
noise = [threading.Thread(target=allocate) for _ in range(3)]
workers = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in noise + workers]
[t.join() for t in workers]
stop.set()
print(len(counts), all(counts))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "400 True\n"


def test_a_command_started_by_a_thread_outlives_the_thread() -> None:
    started: list[Spawned] = []
    thread = threading.Thread(target=lambda: started.append(start("sh", "-c", "sleep 0.3; exit 4")))
    thread.start()
    thread.join()

    assert os.waitstatus_to_exitcode(finish(started[0])[0].value) == 4


@pytest.mark.parametrize("backend", ["compiled", "fallback"])
def test_both_backends_speak_alike(backend: str, tmp_path: Path) -> None:
    code = f"""
import os, sys
if {backend!r} == "fallback":
    sys.modules["fermix.native._native"] = None
from fermix.native import IS_COMPILED, Limits, RecordReader, reap, spawn
null = os.open("/dev/null", os.O_RDWR)
out, out_end = os.pipe()
passed, passed_end = os.pipe()
script = f"setsid sleep 60 & echo passed >&{{passed_end}}; pwd; nice; ulimit -n -c; env; "
script += "ls /proc/self/fd; kill -9 $$"
s = spawn(["sh", "-c", script], cwd={str(tmp_path)!r}, env={{"PATH": "/usr/bin:/bin", "A": "b=c"}},
          stdin=null, stdout=out_end, stderr=out_end, pass_fds=[passed_end],
          limits=Limits(open_files=99, nice=3))
os.close(out_end), os.close(passed_end)
text = b""
while part := os.read(out, 10000):
    text += part
words = text.decode().replace(f"{{passed_end}}\\n", "PASSED\\n").split()
records = b""
while part := os.read(s.status_fd, 100):
    records += part
print(sorted(words), os.read(passed, 100), [(r.kind, r.value) for r in RecordReader().feed(records)])
for wrong, cwd in (("/no/such", "/"), ("/bin/true", "/no/folder")):
    try:
        spawn([wrong], cwd=cwd, env={{}}, stdin=null, stdout=null, stderr=null)
    except OSError as error:
        print(error.errno, error.filename)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[1:] == ["2 /no/such", "2 /no/folder"]
    assert "b'passed\\n' [(<RecordKind.ENDED: 3>, 9), (<RecordKind.SWEPT: 4>, 0)]" in lines[0]
    for word in ("'A=b=c'", "'PASSED'", f"'{tmp_path}'"):
        assert word in lines[0]
