"""`fermix service`, and start, stop and restart through an installed unit.

The service manager is a script on the PATH that writes down what it is asked, and starts and stops the
daemon as the unit says.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import status

SYSTEMCTL = r"""#!/bin/sh
state="$(dirname "$0")/state"
echo "$(basename "$0") $*" >> "$state/calls"
[ -e "$state/unreachable" ] && { echo "Failed to connect to bus: No medium found" >&2; exit 1; }
[ "$1" = --user ] && shift
shift
running() { [ -s "$state/pid" ] && grep -q ') [^ZX] ' "/proc/$(cat "$state/pid")/stat" 2>/dev/null; }
case "$1" in
  start)
    [ -e "$state/refuse" ] && { echo "Interactive authentication required." >&2; exit 4; }
    running && exit 0
    unit="$HOME/.config/systemd/user/fermix.service"
    command=$(sed -n 's/^ExecStart=//p' "$unit")
    variables=$(sed -n 's/^Environment=//p' "$unit" | tr '\n' ' ')
    (eval "exec setsid env $variables INVOCATION_ID=1 $command") > "$state/journal" 2>&1 < /dev/null &
    echo $! > "$state/pid" ;;
  stop)
    [ -e "$state/refuse" ] && { echo "Interactive authentication required." >&2; exit 4; }
    running && kill "$(cat "$state/pid")"; rm -f "$state/restarting" ;;
  show)
    if running; then echo ActiveState=active; echo SubState=running; echo "MainPID=$(cat "$state/pid")"
    elif [ -e "$state/restarting" ]; then echo ActiveState=activating; echo SubState=auto-restart
    else echo ActiveState=failed; echo Result=exit-code; echo ExecMainStatus=78; fi ;;
esac
exit 0
"""

LOGINCTL = r"""#!/bin/sh
state="$(dirname "$0")/state"
echo "$(basename "$0") $*" >> "$state/calls"
case "$1" in show-user) echo no ;; *) exit "$(cat "$state/linger" 2>/dev/null || echo 0)" ;; esac
"""


class Machine:
    """The `fermix` fixture on a machine with a service manager."""

    def __init__(self, fermix: Any) -> None:
        self.fermix = fermix
        self.home: Path = fermix.home
        self.programs = fermix.root / "programs"
        self.state = self.programs / "state"
        self.state.mkdir(parents=True)
        for name, script in (("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)):
            (self.programs / name).write_text(script)
            (self.programs / name).chmod(0o755)
        fermix.environment["PATH"] = f"{self.programs}:{fermix.environment['PATH']}"
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text("[http]\nport = 0\n")

    def __call__(self, *words: str, **options: Any) -> Any:
        return self.fermix(*words, **options)

    @property
    def unit(self) -> Path:
        return Path(self.fermix.root) / ".config/systemd/user/fermix.service"

    @property
    def calls(self) -> list[str]:
        try:
            return (self.state / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []

    def verbs(self) -> list[str]:
        """What systemctl was told to do since the last look, without questions."""
        calls = [line.split() for line in self.calls]
        (self.state / "calls").unlink(missing_ok=True)
        words = [[word for word in call if not word.startswith("-")] for call in calls]
        return [call[1] for call in words if call[0] == "systemctl" and call[1] != "show"]

    def pid(self) -> int:
        return int((self.home / "fermix.pid").read_text())


@pytest.fixture
def machine(fermix: Any) -> Machine:
    """A service manager, and a home whose daemon takes any free port."""
    return Machine(fermix)


def test_install_runs_the_daemon_and_uninstall_leaves_only_the_home(machine: Machine) -> None:
    before = sorted(path.name for path in machine.fermix.root.iterdir())

    installed = machine("service", "install", "--user")
    running = machine("status", "--json")
    shown = machine("service", "status")
    removed = machine("service", "uninstall")

    assert installed.exit_code == 0, installed.stderr
    assert installed.stdout.startswith(f"fermix: installed the user service ({machine.unit})\n")
    assert json.loads(running.stdout)["service"]["unit"] == str(machine.unit)
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (
        0,
        f"fermix: the user service is active (running), pid {json.loads(running.stdout)['arbiter_pid']}",
    )
    assert removed.exit_code == 0, removed.stderr
    assert machine("status").exit_code == 3
    assert not machine.unit.exists()
    left = sorted(path.name for path in machine.fermix.root.iterdir() if path.name != ".cache")
    assert left == before
    assert not (machine.home / "service.env").exists()


def test_install_has_the_manager_know_the_unit_and_lets_the_user_linger(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")

    assert "loginctl --no-ask-password enable-linger " + user() in machine.calls
    assert machine.verbs() == ["daemon-reload"]


def user() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


def test_lingering_that_is_not_allowed_is_named_with_its_command(machine: Machine) -> None:
    (machine.state / "linger").write_text("1")

    done = machine("service", "install", "--user", "--no-start")

    assert done.exit_code == 0
    assert f"sudo loginctl enable-linger {user()}" in done.stderr


def test_start_stop_and_restart_drive_the_unit(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    machine.verbs()

    started = machine("start")
    pid = machine.pid()
    again = machine("start")
    verbs_of_start = machine.verbs()
    restarted = machine("restart")
    verbs_of_restart = machine.verbs()
    new_pid = machine.pid()
    stopped = machine("stop")

    assert [each.exit_code for each in (started, again, restarted, stopped)] == [0] * 4, started.stderr
    assert started.stdout == f"fermix: running (pid {pid}, version 0.1.0)\n"
    assert again.stdout == f"fermix: already running (pid {pid}, version 0.1.0)\n"
    assert verbs_of_start == ["reset-failed", "start"]
    assert verbs_of_restart == ["stop", "reset-failed", "start"]
    assert new_pid != pid
    assert machine.verbs() == ["stop"]
    assert machine("status").exit_code == 3


def test_start_after_failures_too_many_forgets_them_first(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    machine.verbs()

    assert machine("start").exit_code == 0

    assert machine.verbs() == ["reset-failed", "start"]


def test_a_second_start_waits_for_the_one_that_warms_up(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")

    racers = [machine.fermix.start("start") for _ in range(3)]
    said = {racer.communicate(timeout=60)[0] for racer in racers}

    assert {racer.returncode for racer in racers} == {0}, said
    assert all(f"running (pid {machine.pid()}".encode() in line for line in said), said


def test_a_unit_that_waits_to_be_tried_again_is_stopped(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    (machine.state / "restarting").touch()

    done = machine("stop")

    assert (done.exit_code, done.stdout) == (0, "fermix: stopped (it waited to be started again)\n")
    assert "stop" in machine.verbs()
    assert machine("stop").exit_code == 3


def test_a_service_that_cannot_start_is_told_in_its_own_words(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    (machine.home / "config.toml").write_text("[gatway]\nrunning_turns = 3\n")

    done = machine("start")

    told = done.stderr.removeprefix("fermix: starting fermix ...\n").splitlines()
    assert done.exit_code == 1
    assert told[0] == "fermix: The daemon ended while it started (exit code 78)."
    assert told[1].startswith("  No section named 'gatway'")
    assert told[2:] == ["  try: fermix config show --defaults"]


def test_without_the_service_manager_the_daemon_is_started_by_itself(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    (machine.state / "unreachable").touch()

    started = machine("start")
    stopped = machine("stop")
    nothing = machine("stop")

    assert started.exit_code == stopped.exit_code == 0, started.stderr
    assert nothing.exit_code == 3
    assert "cannot be reached" in started.stderr
    assert "without its service" in started.stderr


def test_missing_rights_are_told_and_nothing_is_started_beside_the_unit(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    (machine.state / "refuse").touch()

    done = machine("start", "--json")

    assert done.exit_code == 1
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["hint"]) == ("manager_refused", "systemctl --user start fermix")
    assert machine("status").exit_code == 3


def test_without_rights_a_stop_goes_over_the_socket_and_a_restart_leaves_it_running(
    machine: Machine,
) -> None:
    machine("service", "install", "--user")
    pid = machine.pid()
    (machine.state / "refuse").touch()

    restarted = machine("restart")
    still = machine.pid()
    stopped = machine("stop")

    assert restarted.exit_code == 1
    assert restarted.stderr.endswith("  try: systemctl --user restart fermix\n")
    assert still == pid
    assert (stopped.exit_code, stopped.stdout) == (0, f"fermix: stopped (pid {pid})\n")


def test_a_daemon_started_by_hand_makes_room_for_the_service(machine: Machine) -> None:
    machine("start")
    by_hand = machine.pid()

    done = machine("service", "install", "--user", "--json")

    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["running"]["arbiter_pid"] == machine.pid() != by_hand
    assert machine.pid() == int((machine.state / "pid").read_text())


def test_a_running_service_is_repaired_and_restarted_only_when_told(machine: Machine) -> None:
    machine("service", "install", "--user")
    pid = machine.pid()
    machine.unit.write_text(machine.unit.read_text().replace("RestartSec=5s", "RestartSec=1s"))

    seen = machine("service", "status", "--json")
    repaired = machine("service", "install")
    kept = machine.pid()
    current = machine("service", "install")
    restarted = machine("service", "install", "--restart")

    assert seen.exit_code == 1
    (difference,) = json.loads(seen.stdout)["differences"]
    assert (difference["installed"], difference["expected"]) == ("RestartSec=1s", "RestartSec=5s")
    assert "- RestartSec=1s\n" in repaired.stdout
    assert "+ RestartSec=5s\n" in repaired.stdout
    assert "fermix restart" in repaired.stderr
    assert kept == pid
    assert current.stdout.startswith("fermix: current already: the user service")
    assert restarted.exit_code == 0, restarted.stderr
    assert machine.pid() != pid


def test_status_says_which_service_the_home_has(fermix: Any, daemon: Any) -> None:
    fermix("service", "install", "--user", "--no-start", environment={"PATH": "/usr/bin:/bin"})
    unit = fermix.root / ".config/systemd/user/fermix.service"

    shown = fermix("status")
    as_json = json.loads(fermix("status", "--json").stdout)
    daemon.close()
    alone = fermix("status")

    told = "  unit   user service, starts at login, this daemon was not started by it\n"
    assert told in shown.stdout
    assert as_json == status() | {
        "service": {"scope": "user", "unit": str(unit), "enabled": True, "runs_it": False}
    }
    assert alone.exit_code == 3
    assert alone.stderr == (
        f"fermix: The daemon is not running; its user service is '{unit}'.\n  try: fermix start\n"
    )


def test_another_shell_sees_no_drift(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    path = machine.fermix.environment.get("PYTHONPATH", "") + ":/somewhere"

    done = machine("service", "status", environment={"PYTHONPATH": path, "LANG": "C", "TZ": "UTC"})

    assert done.exit_code == 0, done.stdout


def test_another_home_is_not_driven_by_this_unit(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    machine.verbs()
    other = {"FERMIX_HOME": str(machine.fermix.root / "other")}

    done = machine("stop", environment=other)
    refused = machine("service", "install", "--user", environment=other)

    assert done.exit_code == 3
    assert machine.verbs() == []
    assert refused.exit_code == 1
    assert f"serves the home '{machine.home}'" in refused.stderr


@pytest.mark.parametrize("scope", ["--user", "--system"])
def test_a_throw_away_root_is_all_that_is_touched(machine: Machine, scope: str) -> None:
    root = machine.fermix.root / "root"
    person = () if os.geteuid() else ("--as-root",)
    words = (scope, "--root", str(root))

    installed = machine("service", "install", *words, *(person if scope == "--system" else ()))
    files = [path for path in root.rglob("*") if path.is_file()]
    shown = machine("service", "status", *words)
    removed = machine("service", "uninstall", *words)

    assert [each.exit_code for each in (installed, shown, removed)] == [0, 0, 0], installed.stderr
    assert "fermix.service" in {path.name for path in files}
    assert not root.exists()
    assert machine.calls == []


@pytest.mark.parametrize("verb", ["install", "status", "uninstall"])
def test_both_scopes_at_once_are_refused(machine: Machine, verb: str) -> None:
    done = machine("service", verb, "--user", "--system")

    assert done.exit_code == 2
    assert "--user and --system exclude each other" in done.stderr
    assert machine.calls == []


def test_a_system_service_never_runs_as_root_by_itself(machine: Machine) -> None:
    root = machine.fermix.root / "root"
    words = ("service", "install", "--system", "--root", str(root))

    done = machine(*words)

    if os.geteuid() == 0:
        assert done.exit_code == 2
        assert "as root" in done.stderr
        assert "--as-root" in done.stderr
        person_home = root / "home/person/.fermix"
        person_home.mkdir(parents=True)
        os.chown(person_home, 65534, -1)
        machine(*words, "--home", "/home/person/.fermix")
    text = (root / "etc/systemd/system/fermix.service").read_text()
    name = user() if os.geteuid() else "nobody"
    assert f"\nUser={name}\n" in text


def test_nothing_installed_is_told(machine: Machine) -> None:
    for verb in ("status", "uninstall"):
        done = machine("service", verb, "--user", "--json")
        assert done.exit_code == 1
        error = json.loads(done.stdout)["error"]
        assert (error["code"], error["hint"]) == ("service_missing", "fermix service install --user")


def test_a_command_of_the_daemon_itself_does_not_end_it(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    words = " ".join(f"'{word}'" for word in machine.fermix.argv)
    script = f"""
echo $$ > '{machine.home}/fermix.pid'
for verb in stop restart 'service uninstall' 'service install --user --restart'; do
  {words} $verb; echo "status $?"
done
"""

    done = subprocess.run(
        ["sh", "-c", script],
        env=machine.fermix.environment,
        cwd=machine.fermix.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (machine.home / "fermix.pid").unlink()

    assert done.stdout.splitlines() == ["status 1"] * 4
    assert done.stderr.count("runs inside the daemon") == 4
    assert "in a terminal of your own: fermix stop" in done.stderr
    assert machine.unit.exists()


def test_a_stop_is_done_in_the_units_time_while_a_provider_hangs(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name, value in (
            ("providers.silent.base_url", f"http://127.0.0.1:{silent.getsockname()[1]}/v1"),
            ("providers.silent.model", "m"),
            ("provider.name", "silent"),
            ("runtime.drain_s", "1"),
            ("runtime.stop_s", "2"),
        ):
            assert machine("config", "set", name, value).exit_code == 0
        machine("service", "install", "--user")
        asking = machine.fermix.start("ask", "hi")
        silent.settimeout(30)
        call, _ = silent.accept()
        text = machine.unit.read_text()
        limit_s = text.partition("\nTimeoutStopSec=")[2].partition("s\n")[0]

        stopped = machine("stop", "--timeout", limit_s)

        call.close()
        asking.kill()
        asking.communicate(timeout=10)

    assert stopped.exit_code == 0, stopped.stderr
    assert int(limit_s) > 1 + 2


def test_status_judges_the_files_also_without_the_service_manager(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    (machine.state / "unreachable").touch()

    done = machine("service", "status")

    assert done.exit_code == 0
    assert done.stdout.startswith("fermix: the user service is installed\n")
    assert "cannot be reached" in done.stderr


def test_status_names_the_command_that_repairs_this_very_service(fermix: Any) -> None:
    root = fermix.root / "an image"
    fermix("service", "install", "--user", "--root", str(root))
    unit = next(root.rglob("systemd/user/fermix.service"))
    unit.write_text(unit.read_text().replace("RestartSec=5s", "RestartSec=1s"))

    told = fermix("service", "status", "--root", str(root)).stderr.removeprefix("  try: fermix ")
    repaired = fermix(*shlex.split(told))

    assert repaired.exit_code == 0, repaired.stderr
    assert "RestartSec=5s" in unit.read_text()


def test_uninstall_tells_once_that_the_service_manager_cannot_be_reached(machine: Machine) -> None:
    machine("service", "install", "--user", "--no-start")
    (machine.state / "unreachable").touch()

    done = machine("service", "uninstall")

    assert (done.exit_code, done.stderr.count("cannot be reached")) == (0, 1), done.stderr
