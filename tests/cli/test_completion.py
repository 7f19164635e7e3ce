"""What a shell offers after a press of the tab key."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from typing import Any

import pytest


def offered(fermix: Any, *words: str) -> list[str]:
    """What bash would offer for the last word, by the script that fermix prints."""
    folder = fermix.root / "bin"
    folder.mkdir(exist_ok=True)
    command = folder / "fermix"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(fermix.argv)} "$@"\n')
    command.chmod(0o755)
    script = fermix("completion", "bash").stdout
    line = " ".join(shlex.quote(word) for word in ("fermix", *words))
    asked = (
        f"{script}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n"
        '_fermix_completion fermix\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {**fermix.environment, "PATH": f"{folder}:{fermix.environment['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", asked],
        env=environment,
        cwd=fermix.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("mod",), ["models"]),
        (("models", "a"), ["add"]),
        (("models", "add", "--sh"), ["--sha256"]),
        (("completion", "z"), ["zsh"]),
        (("help", "mod"), ["models"]),
        (("help", "models", ""), ["add", "list", "remove", "use"]),
        (("help", "ask", ""), []),
        (("config", "get", "gateway.running"), ["gateway.running_turns"]),
        (("sessions", "delete", "x"), []),
    ],
)
def test_commands_options_and_keys_are_offered(
    fermix: Any, words: tuple[str, ...], expected: list[str]
) -> None:
    assert offered(fermix, *words) == expected


def test_names_of_models_are_offered_without_a_daemon(fermix: Any) -> None:
    (fermix.home / "models").mkdir(parents=True)
    (fermix.home / "models/qwen.gguf").write_bytes(b"GGUF")
    assert offered(fermix, "models", "use", "q") == ["qwen"]
    assert not (fermix.home / "fermix.pid").exists()


def test_names_of_secrets_in_files_are_offered(fermix: Any) -> None:
    fermix("secrets", "set", "mine", stdin="s")
    assert offered(fermix, "secrets", "remove", "m") == ["mine"]


def test_name_of_several_words_is_offered_as_one(fermix: Any, daemon: Any) -> None:
    sessions = [{"session": name, "title": ""} for name in ("summer plan", "*")]
    daemon.on["sessions.list"] = lambda request: request.result(sessions=sessions)
    assert offered(fermix, "sessions", "show", "") == ["summer\\", "plan", "\\*"]


def test_names_of_sessions_are_offered_by_a_running_daemon(fermix: Any, daemon: Any) -> None:
    sessions = [{"session": "garden", "title": "Roses"}, {"session": "game", "title": ""}]
    daemon.on["sessions.list"] = lambda request: request.result(sessions=sessions)
    assert offered(fermix, "sessions", "show", "gar") == ["garden"]
    assert offered(fermix, "ask", "--session", "ga") == ["garden", "game"]
    offered(fermix, "sessions", "archive", "--undo", "ga")
    assert daemon.asked("sessions.list")[-1]["is_archived"] is True


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_one_its_shell_can_read(fermix: Any, shell: str) -> None:
    script = fermix("completion", shell).stdout
    assert "_FERMIX_COMPLETE" in script
    assert json.loads(fermix("completion", shell, "--json").stdout)["script"].strip() == script.strip()
    program = shutil.which(shell)
    if program is not None:  # zsh and fish are not on every machine
        path = fermix.root / "script"
        path.write_text(script)
        subprocess.run([program, "-n", str(path)], timeout=30, check=True)
