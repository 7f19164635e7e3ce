"""The command line as a whole: every command loads, mistakes are told in one line."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from fermix import __version__
from fermix.cli.main import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(fermix: Any, name: str) -> None:
    done = fermix(name, "--help")

    assert done.exit_code == 0, done.stderr
    assert f"fermix {name}" in done.stdout
    assert "Example" in done.stdout


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
def test_overview_names_every_command(fermix: Any, words: tuple[str, ...]) -> None:
    done = fermix(*words)

    assert done.exit_code == 0
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("words", [("version",), ("--version",), ("-V",), ("version", "--json")])
def test_version_is_printed(fermix: Any, words: tuple[str, ...]) -> None:
    done = fermix(*words)

    assert done.exit_code == 0
    assert done.stdout.strip() in (f"fermix {__version__}", json.dumps({"version": __version__}))


def test_unknown_command_is_answered_with_the_nearest(fermix: Any) -> None:
    done = fermix("statsu")

    assert done.exit_code == 2
    assert done.stdout == ""
    assert "fermix: No command named 'statsu'. Did you mean 'status'?" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("ask",),
        ("ask", "  ", "\t"),
        ("ask", "--timeout", "0", "hi"),
        ("ask", "--attach", "/no/such/file", "hi"),
        ("chat", "--new", "--session", "x"),
        ("logs", "-n", "many"),
        ("run", "--loudly"),
        ("sessions", "shwo"),
        ("sessions", "show"),
        ("status", "now"),
        ("stop", "--timeout", "-1"),
        ("--no-such-option",),
        ("help", "asc"),
        ("help", "ask", "more"),
    ],
)
def test_mistake_on_the_command_line_is_told_without_a_trace(fermix: Any, words: tuple[str, ...]) -> None:
    done = fermix(*words)

    assert done.exit_code == 2
    assert done.stderr.startswith("fermix: ")
    assert "\n  try: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("ask --timeout soon hi", "'soon' is not a number.\n  try: fermix ask --help\n"),
        ("logs -n many", "'many' is not a whole number.\n  try: fermix logs --help\n"),
        ("chat --session", "Option '--session' requires an argument.\n  try: fermix chat --help\n"),
        ("sessions shwo", "No command named 'shwo'. Did you mean 'show'? Available: archive, "),
        ("help sessions nope", "No command named 'nope'. Available: archive, "),
        ("config nope", "No command named 'nope'. Available: check, "),
        (
            "models nope",
            "No command named 'nope'. Available: add, list, remove, use.\n  try: fermix models --help\n",
        ),
        ("ask --jsn x", "No such option '--jsn'. Did you mean one of: '--json', '--stdin'?\n"),
    ],
)
def test_mistake_is_told_in_a_persons_words(fermix: Any, words: str, said: str) -> None:
    assert said in fermix(*words.split()).stderr


def test_mistake_is_told_as_json_when_json_is_asked(fermix: Any) -> None:
    done = fermix("ask", "--json")

    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["code"] == "usage"
    assert done.stderr == ""


def test_json_after_a_double_dash_is_text(fermix: Any) -> None:
    done = fermix("status", "--", "--json")

    assert done.exit_code == 2
    assert done.stdout == ""


def test_help_of_a_command_is_its_help_option(fermix: Any) -> None:
    assert fermix("help", "sessions", "show").stdout == fermix("sessions", "show", "--help").stdout


def test_closed_pipe_ends_quietly(fermix: Any) -> None:
    pipe = subprocess.run(
        ["/bin/sh", "-c", '"$@" | true', "sh", *fermix.argv, "help", "ask"],
        env=fermix.environment,
        cwd=fermix.root,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert pipe.stderr == b""


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        ("help >/dev/full", 1),
        ("help >&-", 0),
        ("status >&- 2>&-", 3),
        ("ask --stdin <&-", 2),
        ("ask --json >/dev/full 2>/dev/full", 2),
        ("ask --json >&-", 2),
    ],
)
def test_full_or_closed_streams_are_no_reason_for_a_trace(fermix: Any, words: str, exit_code: int) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {words}', "sh", *fermix.argv],
        env=fermix.environment,
        cwd=fermix.root,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == exit_code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "itself went wrong" not in done.stderr


@pytest.mark.parametrize("fermix", ["source"], indirect=True)
def test_client_imports_nothing_heavy(fermix: Any) -> None:
    probe = (
        "import sys; sys.argv = ['fermix', 'status']; from fermix.__main__ import main; main();"
        "print(sorted({'gevent', 'msgspec', 'rich', 'prompt_toolkit', 'tomlkit', 'requests', 'ssl'}"
        " & sys.modules.keys()))"
    )
    done = subprocess.run(
        [fermix.argv[0], "-c", probe],
        env=fermix.environment,
        cwd=fermix.root,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("fermix", ["source"], indirect=True)
def test_daemon_refuses_a_process_that_was_patched_too_late(fermix: Any) -> None:
    probe = (
        "import ssl, sys; sys.argv = ['fermix', 'run']; from fermix.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run(
        [fermix.argv[0], "-W", "ignore", "-c", probe],
        env=fermix.environment,
        cwd=fermix.root,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 1
    assert "imported before gevent patched" in done.stderr
