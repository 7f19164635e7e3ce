"""Arbiter and worker as real processes: deaths, hangs, signals, stops, starts that fail."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import stat
import threading
from pathlib import Path

import psutil
import pytest


def has_ipv6_loopback() -> bool:
    """Whether this machine has one; containers often do not."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_a_killed_worker_is_replaced_and_connections_in_the_backlog_are_served(daemon, until):
    daemon.start()
    worker = daemon.ping()

    os.kill(worker, signal.SIGKILL)
    answer = daemon.ask("ping")  # the socket is the arbiter's, so this waits instead of failing

    assert answer and int(answer) != worker
    assert f"Worker {worker} was ended by SIGKILL" in daemon.log()
    until(lambda: daemon.get("/health/ready")[0] == 200)


def test_the_worker_dies_with_its_arbiter(daemon, until, is_alive):
    process = daemon.start()
    worker = daemon.ping()

    process.kill()

    assert until(lambda: not is_alive(worker)) < 2.0


def test_after_both_were_killed_the_next_start_serves_at_once(daemon):
    process = daemon.start()
    worker = daemon.ping()

    os.kill(process.pid, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    daemon.start()

    assert daemon.ping() != worker


def test_there_is_one_worker_whatever_signals_ask_for(daemon, until):
    process = daemon.start()
    worker = daemon.ping()

    for number in (signal.SIGTTIN, signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH):
        os.kill(process.pid, number)
    os.kill(process.pid, signal.SIGUSR2)
    until(lambda: daemon.diary() == ["ripcord"])

    assert [child.pid for child in psutil.Process(process.pid).children()] == [worker]


def test_sigterm_lets_running_work_finish_and_ends_with_zero(daemon, until):
    process = daemon.start()
    answers: list[str | None] = []
    working = threading.Thread(target=lambda: answers.append(daemon.ask("work 0.5")))
    working.start()
    until(lambda: daemon.ping() is not None)

    process.terminate()
    output, _ = process.communicate(timeout=10)
    working.join(timeout=5)

    assert (process.returncode, answers) == (0, ["done"]), output
    assert daemon.diary() == ["drain", "stop"]
    assert {path.name for path in daemon.home.iterdir()} & {"daemon.sock", "fermix.pid"} == set()


def test_a_drain_that_does_not_end_is_cut_at_its_limit(daemon, is_alive):
    daemon.configure(runtime={"drain_s": 0.3, "stop_s": 0.5})
    process = daemon.start("endless")
    worker = daemon.ping()

    process.terminate()
    process.communicate(timeout=5)

    assert process.returncode == 0
    assert not is_alive(worker)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_request_to_stop_ends_a_drain_at_once(daemon, until, second):
    daemon.configure(runtime={"drain_s": 60.0})
    process = daemon.start("endless")

    process.send_signal(signal.SIGINT)
    until(lambda: daemon.diary() == ["drain"])
    process.send_signal(second)
    process.communicate(timeout=5)

    assert process.returncode == 0


def test_a_stop_signal_to_the_whole_group_still_drains(daemon):
    process = daemon.start()

    os.killpg(process.pid, signal.SIGTERM)  # as a service manager does
    process.communicate(timeout=10)

    assert (process.returncode, daemon.diary()) == (0, ["drain", "stop"])


def test_a_terminal_interrupt_still_drains(daemon):
    process = daemon.start()

    os.killpg(process.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
    process.communicate(timeout=10)

    assert (process.returncode, daemon.diary()) == (0, ["drain", "stop"])


def test_a_worker_told_to_end_drains_and_is_replaced(daemon, until):
    daemon.start()
    worker = daemon.ping()

    os.kill(worker, signal.SIGTERM)
    until(lambda: daemon.ping() not in (worker, None))

    assert daemon.diary() == ["drain", "stop"]


@pytest.mark.parametrize("how", ["block 30", "regex"])
def test_a_hub_blocked_in_c_is_logged_with_its_stack_then_killed_and_replaced(daemon, until, how):
    daemon.configure(runtime={"hub_killed_s": 1.0})
    daemon.start()
    worker = daemon.ping()

    daemon.post(how)
    until(lambda: "Stack (most recent call first)" in daemon.log(), 5.0)
    assert "_answer" in daemon.log()
    until(lambda: daemon.ping() not in (worker, None))

    assert re.search(rf"Worker {worker} did not beat for 1\.\d s and is killed", daemon.log())


def test_a_hub_that_comes_back_says_how_long_it_was_blocked(daemon, until):
    daemon.start()

    daemon.post("block 0.5")
    until(lambda: "The hub did not turn for" in daemon.log())

    silence_ms = int(re.search(r"did not turn for (\d+) ms", daemon.log())[1])
    assert 400 <= silence_ms < 3000
    assert daemon.ping() is not None


def test_a_worker_that_was_stopped_together_with_the_arbiter_is_not_killed(daemon, until):
    daemon.configure(runtime={"hub_killed_s": 1.0})
    process = daemon.start()
    worker = daemon.ping()
    os.killpg(process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(worker).status() == psutil.STATUS_STOPPED)

    with pytest.raises(psutil.TimeoutExpired):
        psutil.Process(process.pid).wait(2.5)  # longer than a silent worker may live
    os.killpg(process.pid, signal.SIGCONT)
    until(lambda: daemon.ping() is not None)

    assert daemon.ping() == worker


def test_a_hub_that_comes_back_while_its_stack_is_written_goes_on(daemon, until):
    daemon.configure(runtime={"hub_blocked_log_ms": 100})
    daemon.start()
    worker = daemon.ping()

    for step in range(40):  # blocked for about as long as it takes until the stack is written
        daemon.post(f"spin {0.09 + step % 20 / 1000}")
        assert daemon.ping() == worker

    until(lambda: "did not turn" in daemon.log())
    assert "SIGSEGV" not in daemon.log()


def test_sigusr1_writes_the_stacks_of_all_greenlets_to_the_log(daemon, until):
    process = daemon.start()

    process.send_signal(signal.SIGUSR1)
    until(lambda: "Stacks of all greenlets" in daemon.log())

    assert "self.control.accept()" in daemon.log()


def test_sighup_with_a_broken_config_is_told_once_and_changes_nothing(daemon, until):
    process = daemon.start()
    worker = daemon.ping()
    (daemon.home / "config.toml").write_text("[nonsense]\nx = 1\n")

    process.send_signal(signal.SIGHUP)
    until(lambda: "The settings stay as they are" in daemon.log())
    os.kill(worker, signal.SIGKILL)
    until(lambda: daemon.ping() not in (worker, None))

    assert "reload" not in daemon.diary()
    assert daemon.log().count("The settings stay as they are") == 1


def test_sighup_reloads_arbiter_and_worker_in_place(daemon, until):
    process = daemon.start()
    worker = daemon.ping()
    daemon.configure(logs={"level": "debug"}, runtime={"restarts": 7})

    process.send_signal(signal.SIGHUP)
    until(lambda: "Settings applied: runtime.restarts, logs.level" in daemon.log())

    assert daemon.ping() == worker
    until(lambda: "In the arbiter: Settings applied: runtime.restarts, logs.level" in daemon.log())


def test_settings_the_worker_refuses_do_not_count_for_the_next_one(daemon, until):
    process = daemon.start("stubborn")
    worker = daemon.ping()
    daemon.configure(logs={"level": "debug"})

    process.send_signal(signal.SIGHUP)
    until(lambda: "The stub wants none of it" in daemon.log())
    os.kill(worker, signal.SIGKILL)
    until(lambda: daemon.ping() not in (worker, None))

    assert "In the arbiter" not in daemon.log()
    assert " DEBUG " not in daemon.log()


def test_settings_asked_for_are_taken_up_although_the_worker_dies_first(daemon, until):
    process = daemon.start()
    worker = daemon.ping()
    daemon.configure(logs={"level": "debug"})
    os.kill(worker, signal.SIGSTOP)

    process.send_signal(signal.SIGHUP)
    os.kill(worker, signal.SIGKILL)
    until(lambda: daemon.ping() not in (worker, None))

    until(lambda: "In the arbiter: Settings applied: logs.level" in daemon.log())


def test_sighup_that_comes_while_the_worker_starts_is_not_lost(daemon, until):
    process = daemon.spawn("slow")
    until(lambda: (daemon.home / "fermix.pid").exists() and "Worker" in daemon.log())
    daemon.configure(logs={"level": "debug"})

    process.send_signal(signal.SIGHUP)
    until(lambda: "reload" in daemon.diary())

    until(lambda: "Settings applied: logs.level" in daemon.log())


@pytest.mark.parametrize(
    ("flag", "said", "status"),
    [
        ("refuse", "The stub cannot start.\n  Repair the stub.", 1),
        ("crash", "a bug in the stub", 1),
        ("newer", "of a later fermix", 78),
    ],
)
def test_a_worker_that_cannot_start_ends_the_daemon_with_its_reason(daemon, flag, said, status):
    process = daemon.spawn(flag)

    output, _ = process.communicate(timeout=10)

    assert process.returncode == status
    assert said in output
    assert daemon.log().count("Cannot start") == 1
    assert not (daemon.home / "fermix.pid").exists()


def test_a_worker_killed_while_it_starts_is_tried_again_with_growing_pauses(daemon, until):
    process = daemon.spawn("die")

    until(
        lambda: (
            daemon.home.joinpath("logs/fermix.log").exists()
            and "the next one starts in 1.0 s" in daemon.log()
        )
    )

    assert daemon.log().count("was ended by SIGKILL") == 4
    process.terminate()
    assert process.wait(timeout=5) == 0


def test_a_runtime_that_gives_up_is_replaced_by_a_new_worker(daemon, until):
    daemon.start()
    worker = daemon.ping()

    daemon.post("fail")
    until(lambda: daemon.ping() not in (worker, None))

    assert "the tree gave up" in daemon.log()


def test_live_answers_while_the_runtime_still_starts_and_ready_says_so(daemon, until):
    daemon.spawn("slow")
    until(lambda: (daemon.home / "logs/fermix.log").exists() and "Worker" in daemon.log())

    assert daemon.get("/health/live") == (200, {"status": "live"})
    assert daemon.get("/health/ready") == (503, {"status": "starting"})
    until(lambda: daemon.get("/health/ready") == (200, {"status": "ready"}))


def test_live_answers_while_the_daemon_drains_and_ready_says_so(daemon, until):
    process = daemon.start("endless")

    process.terminate()
    until(lambda: daemon.diary() == ["drain"])

    assert daemon.get("/health/live")[0] == 200
    assert daemon.get("/health/ready") == (503, {"status": "draining"})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", *(["::1"] if has_ipv6_loopback() else [])])
def test_every_loopback_address_can_be_listened_on(daemon, host):
    daemon.configure(http={"host": host})

    daemon.start()

    assert daemon.get("/health/live")[0] == 200


def test_a_private_daemon_has_no_http(daemon):
    process = daemon.start(mode="private")

    listening = [c for p in (process.pid, daemon.ping()) for c in psutil.Process(p).net_connections("inet")]

    assert listening == []


def test_the_home_is_private_and_holds_what_others_look_for(daemon):
    process = daemon.start()

    modes = {
        name: stat.S_IMODE((daemon.home / name).lstat().st_mode)
        for name in (".", "daemon.sock", "run.lock", "fermix.pid", "logs/fermix.log")
    }

    assert modes == {
        ".": 0o700,
        "daemon.sock": 0o600,
        "run.lock": 0o600,
        "fermix.pid": 0o600,
        "logs/fermix.log": 0o600,
    }
    assert daemon.arbiter == process.pid


def test_a_broken_http_request_or_silence_leaves_the_daemon_serving(daemon):
    daemon.start()
    port = int(re.search(r"http://127\.0\.0\.1:(\d+)", daemon.log())[1])
    silent = socket.create_connection(("127.0.0.1", port))

    for bad in (b"\0\xff\xfe\r\n\r\n", b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n\r\n", b"A: b\r\n" * 500):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            link.sendall(bad)
            answer = link.recv(20)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4")

    assert daemon.get("/health/live")[0] == 200
    silent.close()


def test_a_crash_in_c_leaves_its_stack_in_the_log(daemon, until):
    daemon.start()
    worker = daemon.ping()

    daemon.post("segfault")
    until(lambda: daemon.ping() not in (worker, None))

    assert "Fatal Python error: Segmentation fault" in daemon.log()
    assert f"Worker {worker} was ended by SIGSEGV" in daemon.log()


def test_the_blocking_stack_is_logged_after_a_rotation(daemon, until):
    daemon.configure(logs={"size_bytes": 200_000})
    process = daemon.start()
    with (daemon.home / "logs/fermix.log").open("a") as file:
        file.write("filler\n" * 30_000)
    process.send_signal(signal.SIGUSR1)
    put_aside = daemon.home / "logs/fermix.log.1"
    until(put_aside.exists)
    until(lambda: "Stacks of all greenlets" in daemon.log())

    daemon.post("block 0.5")

    until(lambda: "did not turn" in daemon.log())
    assert re.search(r'stub_daemon\.py", line \d+ in _answer', daemon.log().partition("Stack (most")[2])


def test_commands_the_worker_starts_hold_neither_lease_nor_sockets(daemon, until):
    process = daemon.start()
    command = int(daemon.ask("command"))
    daemon.pids.add(command)

    held = open_files(command)
    os.kill(process.pid, signal.SIGKILL)
    daemon.start()

    assert not any("run.lock" in name or "socket" in name for name in held), held


def test_variables_meant_for_other_servers_change_nothing(daemon):
    daemon.environment = {
        "GUNICORN_CMD_ARGS": "--workers 3 --bind 0.0.0.0:9",
        "GUNICORN_PID": "1",
        "GUNICORN_FD": "0",
        "LISTEN_FDS": "1",
        "PORT": "9",
        "WEB_CONCURRENCY": "3",
        "FORWARDED_ALLOW_IPS": "*",
    }
    process = daemon.start()

    assert [child.pid for child in psutil.Process(process.pid).children()] == [daemon.ping()]
    assert daemon.get("/health/live")[0] == 200


def open_files(pid: int) -> set[str]:
    """What its descriptors lead to; one that is closed meanwhile is none."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(str(link.readlink()))
    return found
