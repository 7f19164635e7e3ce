"""`fermix doctor` as a person and a program see it."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fermix import __version__
from tests.cli.conftest import FakeDaemon, Person, Request, status


@pytest.fixture
def homely(fermix: Any) -> Any:
    """The command with a private home whose daemon takes any free port."""
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text("[http]\nport = 0\n")
    (fermix.home / "config.toml").chmod(0o600)
    return fermix


def examined(fermix: Any, *words: str, exit_code: int = 0) -> dict[str, Any]:
    done = fermix("doctor", "--json", *words)
    assert done.exit_code == exit_code, done
    assert done.stdout.count("\n") == 1 and done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def found(answer: dict[str, Any], check: str) -> dict[str, Any]:
    (finding,) = [each for each in answer["findings"] if each["check"] == check]
    return dict(finding)


def test_good_home_passes_without_a_daemon_and_starts_none(homely: Any) -> None:
    answer = examined(homely)

    assert (answer["failed"], answer["fixed"]) == (0, 0)
    assert found(answer, "daemon")["state"] == "skipped"
    assert found(answer, "provider")["hint"] == "fermix doctor --full"
    assert sorted(path.name for path in homely.home.iterdir()) == ["config.toml"]


def test_nothing_is_made_where_no_home_is(fermix: Any) -> None:
    done = fermix("doctor", "--fix")

    assert done.exit_code == 0, done
    assert "try: fermix setup" in done.stdout
    assert not fermix.home.exists()


def test_each_check_has_a_line_with_a_mark_and_its_command(homely: Any) -> None:
    homely.home.chmod(0o755)

    done = homely("doctor")

    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == (f"✗ home      '{homely.home}' has mode 0755: others can reach it. Expected 0700.")
    assert lines[1] == f"    try: chmod 700 {homely.home}"
    assert any(line.startswith("✓ disk") for line in lines)
    assert "1 failed." in lines
    assert lines[-1] == "  try: fermix doctor --fix  # repairs 1 of it"
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("fermix", ["source"], indirect=True)  # a binary writes UTF-8 whatever is set
def test_marks_are_plain_where_the_terminal_has_no_others(homely: Any) -> None:
    done = homely("doctor", environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert done.exit_code == 0
    assert "ok home" in done.stdout and "✓" not in done.stdout


def test_fix_repairs_says_so_and_looks_again(homely: Any) -> None:
    homely.home.chmod(0o755)
    (homely.home / "fermix.pid").write_text("999999\n")

    done = homely("doctor", "--fix")
    again = examined(homely, "--fix")

    assert done.exit_code == 0, done
    assert f"  fixed: '{homely.home}' has mode 0700 now" in done.stdout
    assert "  fixed: removed the stale pid file" in done.stdout
    assert "Nothing failed, 2 repaired." in done.stdout
    assert stat.S_IMODE(homely.home.stat().st_mode) == 0o700
    assert (again["fixed"], again["failed"]) == (0, 0)


def test_what_needs_a_decision_is_named_and_fails(homely: Any) -> None:
    (homely.home / "config.toml").write_text("[http]\nport = 0\nprot = 1\n")

    answer = examined(homely, "--fix", exit_code=1)

    finding = found(answer, "config")
    assert finding["hint"] == "fermix config unset http.prot"
    assert finding["fixable"] is False
    assert answer["failed"] == 1


def test_broken_list_of_tokens_is_named(homely: Any) -> None:
    (homely.home / "tokens.toml").write_text("[[nonsense")
    (homely.home / "tokens.toml").chmod(0o600)

    assert "tokens.toml" in found(examined(homely, exit_code=1), "ports")["saw"]


def test_commands_it_names_do_repair(homely: Any) -> None:
    (homely.home / "config.toml").write_text("[http]\nport = 0\nprot = 1\n")
    hint = found(examined(homely, exit_code=1), "config")["hint"]

    done = homely(*hint.split()[1:])

    assert done.exit_code == 0, done
    assert examined(homely)["failed"] == 0


def test_running_daemon_is_asked(homely: Any) -> None:
    daemon = FakeDaemon(homely.home / "daemon.sock")
    daemon.on["status"] = lambda request: request.result(**status(http=None, version="0.0.1"))
    daemon.on["provider.probe"] = lambda request: request.result(
        status="auth",
        message="The key was refused.",
        hint="fermix secrets set mine",
        latency_ms=3,
        model="m",
    )
    (homely.home / "daemon.sock").chmod(0o600)
    try:
        answer = examined(homely, exit_code=1)
    finally:
        daemon.close()

    assert found(answer, "provider") == {
        "check": "provider",
        "state": "fail",
        "saw": "The key was refused. (auth)",
        "hint": "fermix secrets set mine",
        "fixable": False,
    }
    assert found(answer, "versions")["hint"] == "fermix restart"
    assert found(answer, "daemon")["saw"] == "Its part 'gateway' was restarted 2 times: it broke."
    assert daemon.asked("provider.probe") == [{}]


def test_full_asks_the_provider_through_a_private_daemon(homely: Any) -> None:
    (homely.home / "config.toml").write_text(
        '[provider]\nname = "mine"\n[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )

    answer = examined(homely, "--full", exit_code=1)

    assert found(answer, "provider")["state"] == "fail"
    assert found(answer, "provider")["hint"]
    assert (homely.home / "fermix.pid").exists()


def test_person_who_waits_sees_for_what(homely: Any, person: Callable[..., Person]) -> None:
    daemon = FakeDaemon(homely.home / "daemon.sock")
    (homely.home / "daemon.sock").chmod(0o600)
    is_seen = threading.Event()

    def probe(request: Request) -> None:
        is_seen.wait(20)
        request.result(status="ok", model="m", latency_ms=3)

    daemon.on["provider.probe"] = probe
    try:
        someone = person("doctor")
        someone.sees("looking at provider")
        is_seen.set()
        shown = someone.sees("'m' answered in 3 ms.")
        assert someone.leaves() == 0
    finally:
        is_seen.set()
        daemon.close()

    assert "✓ disk" in shown


def test_ctrl_c_ends_it_at_once(homely: Any, person: Callable[..., Person]) -> None:
    daemon = FakeDaemon(homely.home / "daemon.sock")
    (homely.home / "daemon.sock").chmod(0o600)
    daemon.on["provider.probe"] = lambda request: None
    try:
        someone = person("doctor")
        someone.sees("looking at provider")
        someone.type("\x03")
        assert someone.leaves() == 130
    finally:
        daemon.close()

    assert "Traceback" not in someone.shown


@pytest.mark.parametrize("words", [("--fxi",), ("now",)])
def test_mistakes_are_told_in_a_line(fermix: Any, words: tuple[str, ...]) -> None:
    done = fermix("doctor", *words)

    assert done.exit_code == 2
    assert "try: fermix doctor --help" in done.stderr


def test_client_stays_light(source: Any) -> None:
    script = (
        "import sys; from fermix.cli.main import main; main(['doctor', '--json']);"
        "print([name for name in ('gevent', 'peewee', 'flask', 'requests') if name in sys.modules])"
    )
    source.argv = (source.argv[0], "-c", script)

    done = source()

    assert done.stdout.splitlines()[-1] == "[]", done


def test_version_is_its_own(homely: Any) -> None:
    assert __version__ in found(examined(homely), "versions")["saw"]


def test_kill_in_the_middle_of_a_restore_leaves_both_files(homely: Any) -> None:
    """What a kill after the first of the two writes leaves is repaired by the next run."""
    home = homely.home
    (home / "config.toml").write_bytes(b"\0" * 10)
    (home / "config.toml.bak").write_text("[http]\nport = 0\n")
    (home / "config.toml.bak").chmod(0o600)
    aside = home / "config.toml.broken-01d448af"  # named after those ten bytes
    aside.write_bytes(b"\0" * 10)

    examined(homely, "--fix")

    assert (home / "config.toml").read_text() == "[http]\nport = 0\n"
    assert [path.name for path in home.glob("config.toml.broken-*")] == [aside.name]
    assert aside.read_bytes() == b"\0" * 10
