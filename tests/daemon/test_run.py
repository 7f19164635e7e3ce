"""Starts that are refused before any process is forked, and what the owner reads then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest


def test_a_wrong_setting_is_named_and_nothing_is_left(daemon):
    (daemon.home / "config.toml").write_text("[http]\nprot = 1\n")

    process = daemon.spawn()
    output, _ = process.communicate(timeout=10)

    assert process.returncode == 78
    assert "prot" in output
    assert "port" in output
    assert output.startswith("fermix: ")
    assert "Traceback" not in output
    assert {path.name for path in daemon.home.iterdir()} & {"fermix.pid", "daemon.sock"} == set()


def test_an_address_others_can_reach_is_refused(daemon):
    daemon.configure(http={"host": "192.168.1.5"})

    process = daemon.spawn()
    output, _ = process.communicate(timeout=10)

    assert process.returncode == 78
    assert "tokens would cross the network unencrypted" in output
    assert "or a loopback address" in output


def test_a_home_others_can_enter_is_refused(daemon):
    daemon.home.chmod(0o755)

    process = daemon.spawn()
    output, _ = process.communicate(timeout=10)

    assert process.returncode == 78
    assert "chmod 700" in output


def test_a_full_disk_is_said_in_one_line(daemon):
    command = f"ulimit -f 0; exec '{sys.executable}' -m tests.daemon.stub_daemon full"

    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "FERMIX_HOME": str(daemon.home), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("fermix: ")
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_foreground_says_where_it_listens_and_how_to_stop_it(daemon):
    process = daemon.start()
    url = daemon.url()

    process.terminate()
    output, _ = process.communicate(timeout=10)

    assert output.splitlines() == [
        f"fermix 0.1.0 listens on {url} and {daemon.home}/daemon.sock. Stop it with Ctrl-C or: fermix stop"
    ]


@pytest.mark.parametrize("folder", ["logs", "logs/fermix.log"])
def test_a_log_that_cannot_be_written_does_not_keep_the_daemon_from_serving(daemon, folder):
    (daemon.home / "logs").mkdir()
    if folder == "logs/fermix.log":
        (daemon.home / folder).mkdir()
    else:
        (daemon.home / "logs").rmdir()
        (daemon.home / "logs").symlink_to("/dev")

    process = daemon.start()

    assert daemon.ping() is not None
    process.terminate()
    assert process.wait(timeout=5) == 0


def test_a_start_without_standard_descriptors_serves(daemon, until):
    command = f"exec '{sys.executable}' -m tests.daemon.stub_daemon full <&- >&- 2>&-"
    process = subprocess.Popen(
        ["bash", "-c", command], env={**os.environ, "FERMIX_HOME": str(daemon.home)}, start_new_session=True
    )
    daemon.processes.append(process)

    until(lambda: daemon.ping() is not None)
    process.terminate()

    assert process.wait(timeout=5) == 0
    assert daemon.home.joinpath("run.lock").read_text().split()[:2] == [str(process.pid), "full"]


def test_a_foreground_start_shows_its_log_at_the_terminal(daemon, until):
    master, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.daemon.stub_daemon", "full"],
        env={**os.environ, "FERMIX_HOME": str(daemon.home)},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    daemon.processes.append(process)
    os.close(terminal)
    until(lambda: daemon.ping() is not None)

    process.terminate()
    assert process.wait(timeout=5) == 0

    shown = os.read(master, 65_536).decode()
    os.close(master)
    assert "fermix.daemon.worker" in shown
    assert "Stop it with Ctrl-C or: fermix stop" in shown


def test_a_terminal_that_goes_away_does_not_end_the_daemon(daemon, until):
    master, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.daemon.stub_daemon", "full"],
        env={**os.environ, "FERMIX_HOME": str(daemon.home)},
        stderr=terminal,
        start_new_session=True,
    )
    daemon.processes.append(process)
    os.close(terminal)
    until(lambda: daemon.ping() is not None)

    os.close(master)
    process.send_signal(signal.SIGHUP)  # as the kernel tells a terminal's processes
    until(lambda: "reload" in daemon.diary())

    assert daemon.ping() is not None
    process.terminate()
    assert process.wait(timeout=5) == 0


def test_a_service_manager_is_told_not_to_try_again_and_the_log_has_the_reason(daemon):
    (daemon.home / "config.toml").write_text("[http]\nprot = 1\n")

    daemon.environment["INVOCATION_ID"] = "0" * 32
    process = daemon.spawn()
    output, _ = process.communicate(timeout=10)

    assert process.returncode == 78
    assert daemon.log() == output
