"""Commands: how they end, what of their output is kept, and that nothing of them is left."""

from __future__ import annotations

import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from fermix.errors import DeadlineExceeded
from fermix.process import Command, CommandHost, Ending, GroupLedger, Limits
from fermix.tasks import Cancel, Deadline, TaskGroup, sleep, time_limit
from tests.process.conftest import Shell
from tests.process.survivors import await_none, await_some, marked

NASTY = Path(__file__).with_name("nasty.py")


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_exit_code_and_merged_output_come_back(shell: Shell) -> None:
    result = shell("echo one; echo two >&2; exit 7")

    assert (result.output, result.exit_code, result.signal) == ("one\ntwo\n", 7, None)
    assert (result.ended, result.is_cut) == (Ending.EXIT, False)


def test_death_by_a_signal_is_told_apart_from_an_exit_code(shell: Shell) -> None:
    result = shell("kill -SEGV $$")

    assert (result.exit_code, result.signal, result.ended) == (None, signal.SIGSEGV, Ending.EXIT)


@pytest.mark.parametrize(
    ("argv", "cwd", "named"),
    [
        (("no-such-program",), "/", "no-such-program"),
        (("/no/such/file",), "/", "/no/such/file"),
        (("ls",), "/no/such/folder", "/no/such/folder"),
        (("/etc/passwd",), "/", "/etc/passwd"),
        (("echo", "a\0b"), "/", "NUL"),
        (("echo", "x" * 3_000_000), "/", "too long"),
    ],
)
def test_a_command_that_cannot_start_says_why(
    host: CommandHost, argv: tuple[str, ...], cwd: str, named: str
) -> None:
    before = open_descriptors()

    result = host.run(Command(argv=argv, cwd=Path(cwd), environment={}, timeout_s=5), Cancel())

    assert result.ended is Ending.FAILED_TO_START
    assert named in result.output
    sleep(0)
    assert open_descriptors() <= before + 1


def test_input_larger_than_a_pipe_reaches_the_command(shell: Shell) -> None:
    result = shell("cat", stdin=b"x" * 300_000)

    assert result.output == "x" * 300_000


def test_a_command_that_does_not_read_its_input_is_no_failure(shell: Shell) -> None:
    assert shell("exec true", stdin=b"x" * 300_000).exit_code == 0


def test_without_input_it_reads_an_empty_one(shell: Shell) -> None:
    assert shell("cat; echo done").output == "done\n"


def test_a_signal_ignored_by_python_has_its_usual_effect(shell: Shell) -> None:
    result = shell("yes | head -n 1; grep -E 'Sig(Ign|Blk)' /proc/self/status")

    assert result.output.splitlines() == ["y", "SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"]


def test_only_the_three_standard_descriptors_are_inherited(shell: Shell) -> None:
    listed = shell("ls /proc/self/fd").output.split()

    assert listed == ["0", "1", "2", "3"]  # 3 is the folder ls reads


@pytest.mark.parametrize("flood", ["printf '\\360'", "printf 'ok\\344x'"])
def test_bytes_that_are_no_text_are_replaced(shell: Shell, flood: str) -> None:
    result = shell(flood)

    assert "�" in result.output
    assert result.exit_code == 0


def test_a_character_split_between_two_reads_stays_whole(shell: Shell) -> None:
    pieces: list[str] = []

    result = shell("printf '\\342\\202'; sleep 0.2; printf '\\254'", on_output=pieces.append)

    assert result.output == "".join(pieces) == "€"


def test_timeout_ends_an_orphan_that_holds_the_pipe(shell: Shell, mark: str) -> None:
    start = time.monotonic()

    result = shell("sleep 600 & wait", timeout_s=0.3)

    assert result.ended is Ending.TIMEOUT
    assert time.monotonic() - start < 3
    assert not marked(mark)


def test_a_background_process_ends_with_its_command(shell: Shell, mark: str) -> None:
    result = shell("sleep 600 & exit 4")

    assert (result.ended, result.exit_code) == (Ending.EXIT, 4)
    assert not marked(mark)


def test_a_detached_process_that_ignores_sigterm_ends_with_its_command(shell: Shell, mark: str) -> None:
    result = shell("(trap '' TERM; sleep 999) & exit 0")

    assert result.exit_code == 0
    assert not marked(mark)


def test_a_process_in_a_session_of_its_own_ends_with_its_command(shell: Shell, mark: str) -> None:
    result = shell("setsid sleep 72 & sleep 0.2; exit 0")

    assert result.exit_code == 0
    assert not marked(mark)


def test_sigterm_lets_the_whole_family_clean_up_before_it_is_killed(shell: Shell, tmp_path: Path) -> None:
    child = f"trap 'sleep 0.1; echo child >> {tmp_path}/ended; exit' TERM; while :; do sleep 0.02; done"
    script = f'sh -c "{child}" & trap "exit 5" TERM; while :; do sleep 0.02; done'

    result = shell(script, timeout_s=0.3)

    assert (result.ended, result.exit_code) == (Ending.TIMEOUT, 5)
    assert (tmp_path / "ended").read_text() == "child\n"


def test_a_stopped_process_can_still_be_ended(shell: Shell) -> None:
    result = shell("kill -STOP $$; echo woken", timeout_s=0.2)

    assert result.ended is Ending.TIMEOUT


def test_a_flood_is_cut_at_the_limit_and_ended(shell: Shell) -> None:
    result = shell("trap '' TERM PIPE; yes", output_limit_bytes=10_000)

    assert (result.ended, result.is_cut, len(result.output)) == (Ending.OUTPUT_CAP, True, 10_000)


def test_a_flood_does_not_keep_the_hub_to_itself(shell: Shell) -> None:
    gaps: list[float] = []
    tasks = TaskGroup("test")

    def tick() -> None:
        last = time.monotonic()
        while True:
            sleep(0.001)
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    tasks.start(tick)
    shell("yes", timeout_s=0.5, output_limit_bytes=1 << 40, on_output=lambda text: None)
    tasks.stop(1)

    assert len(gaps) > 50


def test_cancel_ends_a_command_that_ignores_sigterm(shell: Shell, mark: str) -> None:
    cancel = Cancel()
    tasks = TaskGroup("test")
    tasks.start(lambda: (sleep(0.2), cancel.set("stopped by the owner")))

    result = shell("trap '' TERM; while :; do sleep 1; done", cancel=cancel)

    assert (result.ended, result.signal) == (Ending.CANCELLED, signal.SIGKILL)
    assert not marked(mark)


def test_a_cancelled_turn_starts_nothing(shell: Shell, tmp_path: Path) -> None:
    cancel = Cancel()
    cancel.set("stopped before")

    result = shell("touch started", cancel=cancel)

    assert result.ended is Ending.CANCELLED
    assert not (tmp_path / "started").exists()


def test_a_watcher_that_does_not_take_the_output_ends_the_command(shell: Shell) -> None:
    result = shell("echo one; sleep 60", on_output=lambda text: sleep(30))

    assert (result.ended, result.output) == (Ending.STALLED, "one\n")


def test_a_watcher_that_fails_leaves_no_process(shell: Shell, mark: str, ledger: GroupLedger) -> None:
    def fail(text: str) -> None:
        raise RuntimeError("watcher broke")

    with pytest.raises(RuntimeError):
        shell("echo one; sleep 60", on_output=fail)

    await_none(mark)
    deadline = Deadline.after(5)
    while len(ledger) and not deadline.is_over():
        sleep(0.01)
    assert len(ledger) == 0


def test_a_limit_around_the_call_ends_the_command(shell: Shell, mark: str) -> None:
    with pytest.raises(DeadlineExceeded), time_limit(0.3, "the test"):
        shell("trap '' TERM; sleep 60")

    await_none(mark)


@pytest.mark.parametrize("kind", ["stubborn", "walking", "wide"])
def test_nothing_outlives_the_timeout(host: CommandHost, mark: str, kind: str) -> None:
    argv = (sys.executable, "-S", "-E", str(NASTY), kind, mark)

    result = host.run(
        Command(argv=argv, cwd=Path("/"), environment={}, timeout_s=1.0, output_limit_bytes=1 << 40),
        Cancel(),
        lambda text: None,
    )

    assert result.ended in (Ending.TIMEOUT, Ending.EXIT)
    assert result.duration_ms < 5000
    assert not marked(mark)


def test_a_command_that_kills_its_monitor_gains_nothing(shell: Shell, mark: str) -> None:
    result = shell("setsid sleep 73 & sleep 0.1; kill -9 $PPID; sleep 60")

    assert result.ended is Ending.LOST
    assert not marked(mark)


def test_a_command_that_stops_its_monitor_gains_nothing(shell: Shell, mark: str) -> None:
    result = shell("sleep 0.1; setsid sleep 74 & kill -STOP $PPID; sleep 60", timeout_s=0.3)

    assert result.ended is Ending.TIMEOUT
    assert not marked(mark)


def test_without_descriptors_it_says_so_and_loses_none(shell: Shell) -> None:
    shell("true")
    before, (soft, hard) = open_descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)
    results = []
    for room in range(6):
        resource.setrlimit(resource.RLIMIT_NOFILE, (before - 1 + room, hard))
        try:
            results.append(shell("cat", stdin=b"x"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert {result.ended for result in results} == {Ending.FAILED_TO_START}
    assert "Too many open files" in results[0].output
    assert open_descriptors() == before


def test_stop_ends_all_and_refuses_new_ones(host: CommandHost, shell: Shell, mark: str) -> None:
    tasks = TaskGroup("test")
    endings: list[Ending] = []
    for _ in range(3):
        tasks.start(lambda: endings.append(shell("trap '' TERM; sleep 60; sleep 60").ended))
    await_some(mark, 6)

    host.stop(3.0)

    assert tasks.join(1.0)
    assert endings == [Ending.CANCELLED] * 3
    assert not marked(mark)
    assert shell("true").ended is Ending.FAILED_TO_START


def test_stop_ends_a_command_whose_program_is_just_being_loaded(host: CommandHost, shell: Shell) -> None:
    results, tasks = [], TaskGroup("test")
    tasks.start(lambda: results.append(shell("sleep 30")))
    sleep(0)

    host.stop(1.0)

    assert tasks.join(5)
    assert results[0].ended is Ending.CANCELLED


def test_two_hundred_commands_at_once_have_the_right_exit_codes(shell: Shell) -> None:
    tasks = TaskGroup("test")
    codes: dict[int, int | None] = {}
    for number in range(200):
        tasks.start(lambda number=number: codes.update({number: shell(f"exit {number}").exit_code}))

    assert tasks.join(30)
    assert codes == {number: number for number in range(200)}


def test_a_hundred_commands_leave_no_zombie_and_no_descriptor(shell: Shell) -> None:
    shell("true")
    before = open_descriptors()
    for _ in range(100):
        shell("(true &); exit 0")

    children = Path("/proc/thread-self/children").read_text().split()
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in children]
    assert "Z" not in states
    assert open_descriptors() == before


def test_limits_hold_for_the_command(shell: Shell, tmp_path: Path) -> None:
    limits = Limits(memory_bytes=1 << 28, cpu_s=9, file_size_bytes=1 << 20, open_files=64, nice=5)

    result = shell("ulimit -d -t -f -n -c; nice; head -c 2000000 /dev/zero > big", limits=limits)

    lines = shell("ulimit -d; ulimit -t; ulimit -n; ulimit -c; nice", limits=limits).output.split()
    assert lines == [str((1 << 28) // 1024), "9", "64", "0", "5"]
    assert (tmp_path / "big").stat().st_size == 1 << 20
    assert result.ended is Ending.EXIT


def test_more_memory_than_allowed_is_refused_to_the_command(host: CommandHost) -> None:
    argv = (sys.executable, "-S", "-E", "-c", "x = bytearray(1 << 30)")

    result = host.run(
        Command(
            argv=argv, cwd=Path("/"), environment={}, timeout_s=10, limits=Limits(memory_bytes=1 << 28)
        ),
        Cancel(),
    )

    assert result.exit_code == 1
    assert "MemoryError" in result.output
