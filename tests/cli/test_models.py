"""`fermix models add, remove, use`: files in the home, and which of them answers."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.office import until
from tests.providers.model_host import ModelHost, model_bytes

WHOLE = model_bytes()


@pytest.fixture
def host() -> Iterator[ModelHost]:
    made = ModelHost()
    made.files["/tiny.gguf"] = WHOLE
    yield made
    made.close()


@pytest.fixture
def file(fermix: Any) -> Path:
    path = fermix.root / "qwen.gguf"
    path.write_bytes(WHOLE)
    return path


def config(fermix: Any) -> dict[str, Any]:
    return tomllib.loads((fermix.home / "config.toml").read_text())


def names(fermix: Any) -> list[str]:
    return [each["name"] for each in json.loads(fermix("models", "list", "--json").stdout)["models"]]


def test_file_is_added_used_and_removed(fermix: Any, file: Path) -> None:
    added = fermix("models", "add", str(file))
    assert (added.exit_code, added.stdout) == (
        0,
        "qwen is there (0.2 MB). Use it with: fermix models use qwen\n",
    )
    assert "qwen" in names(fermix)

    assert fermix("models", "use", "qwen").stdout == "qwen answers from now on.\n"
    assert config(fermix) == {"provider": {"name": "local", "model": "qwen"}}
    listed = json.loads(fermix("models", "list", "--json").stdout)["models"]
    assert [each["name"] for each in listed if each["in_use"]] == ["qwen"]

    refused = fermix("models", "remove", "qwen")
    assert (refused.exit_code, "fermix models remove qwen --force" in refused.stderr) == (1, True)
    removed = fermix("models", "remove", "qwen", "--force")
    assert removed.stdout == "qwen is removed; 0.2 MB are free again.\n"
    assert "qwen" not in names(fermix)
    assert file.exists()


def test_configured_provider_is_used_with_its_own_model(fermix: Any, file: Path) -> None:
    fermix("config", "set", "providers.mine.base_url", "http://127.0.0.1:1/v1")
    fermix("models", "add", str(file))
    fermix("models", "use", "qwen")

    done = fermix("models", "use", "mine", "--json")

    assert json.loads(done.stdout) == {"provider": "mine", "model": None}
    assert config(fermix)["provider"] == {"name": "mine"}


def test_running_daemon_answers_with_the_chosen_model_from_now_on(fermix: Any, file: Path) -> None:
    fermix("config", "set", "http.port", "0")
    fermix("config", "set", "providers.mine.base_url", "http://127.0.0.1:1/v1")
    fermix("config", "set", "providers.mine.model", "m")
    assert fermix("start").exit_code == 0

    chosen = fermix("models", "use", "mine")
    asked = json.loads(fermix("status", "--json").stdout)["provider"]
    fermix("stop")

    assert (chosen.stdout, chosen.stderr) == ("mine answers from now on.\n", "")
    assert asked == {"name": "mine", "model": "m"}


def test_what_doctor_says_about_a_broken_file_in_use_repairs_it(fermix: Any, file: Path) -> None:
    fermix("models", "add", str(file))
    fermix("models", "use", "qwen")
    (fermix.home / "models/qwen.gguf").write_bytes(b"this is no model")

    findings = json.loads(fermix("doctor", "--json").stdout)["findings"]
    (hint,) = [each["hint"] for each in findings if each["check"] == "helpers" and each["state"] == "fail"]

    assert fermix(*shlex.split(hint)[1:]).exit_code == 0
    assert "qwen" not in names(fermix)


def test_fermix_without_an_engine_says_so_before_it_chooses_a_file(fermix: Any, file: Path) -> None:
    fermix("models", "add", str(file))
    code = "import sys; sys.frozen = True; from fermix.__main__ import main; sys.exit(main())"

    done = subprocess.run(
        [sys.executable, "-c", code, "models", "use", "qwen"],
        env={**fermix.environment, "FERMIX_EXE": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, "download the full fermix" in done.stderr) == (1, True), done.stderr
    assert not (fermix.home / "config.toml").exists()


@pytest.mark.parametrize("verb", ["use", "remove"])
def test_mistyped_model_is_answered_with_the_nearest(fermix: Any, file: Path, verb: str) -> None:
    fermix("models", "add", str(file))

    told = json.loads(fermix("models", verb, "qwne", "--json").stdout)["error"]

    assert told["code"] == "model_unknown"
    assert "Did you mean 'qwen'?" in told["message"]


def test_download_that_was_interrupted_is_listed_and_goes_on(fermix: Any, host: ModelHost) -> None:
    host.gate.clear()
    process = fermix.start("models", "add", host.url())
    part = fermix.home / "models/tiny.gguf.part"
    until("half of it to be there", lambda: part.exists() and part.stat().st_size == len(WHOLE) // 2)
    second = fermix("models", "add", host.url())
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[0].decode()

    assert (second.exit_code, "Another fermix is adding" in second.stderr) == (1, True)
    assert process.returncode == 130
    assert "To go on, give the same command again." in said
    listed = json.loads(fermix("models", "list", "--json").stdout)["unfinished"]
    assert [(each["name"], each["size_bytes"]) for each in listed] == [("tiny", len(WHOLE) // 2)]
    shown = fermix("models", "list")
    assert "unfinished" in shown.stdout
    assert f"fermix models add {host.url()} --name tiny" in shown.stderr

    host.gate.set()
    assert fermix("models", "add", host.url()).exit_code == 0
    assert host.asked[-1][1] == f"bytes={len(WHOLE) // 2}-"
    assert (fermix.home / "models/tiny.gguf").read_bytes() == WHOLE


def test_killed_download_goes_on(fermix: Any, host: ModelHost) -> None:
    host.gate.clear()
    process = fermix.start("models", "add", host.url())
    part = fermix.home / "models/tiny.gguf.part"
    until("half of it to be there", lambda: part.exists() and part.stat().st_size == len(WHOLE) // 2)
    process.kill()
    process.communicate(timeout=20)
    host.gate.set()

    assert fermix("models", "add", host.url()).exit_code == 0
    assert (fermix.home / "models/tiny.gguf").read_bytes() == WHOLE


def test_bar_is_shown_at_a_terminal(fermix: Any, host: ModelHost, person: Any) -> None:
    host.gate.clear()
    someone = person("models", "add", host.url())
    until("the first half", lambda: host.asked)
    asked_s = time.monotonic()
    until("the quiet second to be over", lambda: time.monotonic() > asked_s + 1.2)
    host.gate.set()
    shown = someone.sees("tiny is there")
    assert "downloading tiny: 0.2 MB of 0.2 MB (100 %)" in shown
    assert someone.leaves() == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("models", "add", "nowhere.gguf"), 1),
        (("models", "add", "qwen.gguf", "--name", "../x"), 1),
        (("models", "add", "qwen.gguf", "--sha256", "12"), 2),
        (("models", "add", "qwen.gguf", "--sha256", "0" * 64), 1),
        (("models", "add", "ftp://host/x.gguf"), 1),
        (("models", "remove", "smollm2-135m-instruct"), 1),
    ],
)
def test_wrong_words_change_nothing(fermix: Any, file: Path, words: tuple[str, ...], code: int) -> None:
    done = fermix(*words)
    assert done.exit_code == code
    assert done.stderr.startswith("fermix: ")
    models = fermix.home / "models"
    assert not models.exists() or list(models.iterdir()) == []


def test_disk_that_takes_no_more_ends_in_one_error_and_keeps_what_came(
    fermix: Any, host: ModelHost
) -> None:
    argv = shlex.join([*fermix.argv, "models", "add", host.url()])
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 100; exec {argv}"],  # 100 blocks of 512 bytes to a file
        env=fermix.environment,
        cwd=fermix.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "0.1 MB of the download are kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert fermix("models", "add", host.url()).exit_code == 0
    assert host.asked[-1][1] == "bytes=51200-"
