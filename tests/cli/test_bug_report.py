"""`fermix bug-report`: secrets planted everywhere are in no member of the file."""

from __future__ import annotations

import base64
import json
import stat
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from fermix.testing.model_script import read_script
from fermix.testing.model_server import ModelServer
from tests.cli.conftest import FakeDaemon, status

LOG = "2026-11-30T18:05:00.123Z INFO    fermix.net [4711] [-] "
SECRETS = {
    "stored": "Zq/stored&value one=7712",
    "unlisted": "wideopen-Unlisted-5518",
    "environment": "from-the-Environment-3390",
    "token": "local-programs-Token-4471",
    "device": "9f86d081884c7d659a2feaa0c55ad015",
    "profile": "oauth-refresh-Profile-2204",
    "unit": "written-in-the-Unit-9017",
    "variables": "service-Env-File-6642",
    "config": "typed-into-Config-1183",
    "comment": "sk-commented-out-8829",
    "backup": "in-the-Backup-file-7405",
    "several": "line-one-of-Cert-31\nline-two-of-Cert-32",
}


@pytest.fixture
def planted(fermix: Any) -> Any:
    """A home with secrets in every place they may be, and all of them in the log, spelled in many ways."""
    home = fermix.home
    home.mkdir(mode=0o700)
    (home / "secrets").mkdir(mode=0o700)
    (home / "logs").mkdir()
    put(home / "secrets/stored", SECRETS["stored"] + "\n")
    put(home / "secrets/several", SECRETS["several"])
    put(home / "secrets/unlisted", SECRETS["unlisted"], 0o644)
    put(home / "api-token", SECRETS["token"])
    put(home / "tokens.toml", f'[[tokens]]\nname = "phone"\nsha256 = "{SECRETS["device"]}"\n')
    put(home / "auth.json", json.dumps({"openai": {"refresh": SECRETS["profile"]}}))
    put(home / "service.env", f'PATH="/bin"\nMY_PROXY_PASSWORD="{SECRETS["variables"]}"\n')
    put(home / "config.toml.bak", f'[providers.old]\napi_key = "{SECRETS["backup"]}"\n')
    put(
        home / "config.toml",
        f'# api_key = "{SECRETS["comment"]}"\n[http]\nport = 0\n[providers.mine]\n'
        f'base_url = "https://me:{SECRETS["config"]}@h.example/v1"\napi_key = "@secret:stored"\n'
        f'token = "{SECRETS["config"]}"\nmodel = "m"\n',
    )
    unit = fermix.root / ".config/systemd/user/fermix.service"
    unit.parent.mkdir(parents=True)
    put(
        unit,
        f'[Service]\nExecStart="{fermix.root}/bin/fermix" run\nEnvironment="A_TOKEN={SECRETS["unit"]}"\n',
    )
    put(home / "logs/fermix.log", "".join(spelled(each) for each in SECRETS.values()))
    fermix.environment["FERMIX_SECRET_TELEGRAM"] = SECRETS["environment"]
    return fermix


def put(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text)
    path.chmod(mode)


def spelled(secret: str) -> str:
    half = len(secret) // 2
    ways = (
        secret.replace("\n", "\\n"),
        quote(secret, safe=""),
        quote(secret, safe="").lower(),
        base64.b64encode(b"user:" + secret.encode()).decode(),
        json.dumps({"got": secret}),
        f"cut {secret[:half]}",
        f"{secret[half:]} cut",
    )
    return "".join(f"{LOG}{way}\n" for way in ways) + f"{secret[:5]}\n{secret[5:]}\n"


def reported(fermix: Any, *words: str) -> dict[str, str]:
    """Name → text of each member."""
    done = fermix("bug-report", "--out", str(fermix.root / "report.tar.gz"), *words)
    assert done.exit_code == 0, done
    with tarfile.open(fermix.root / "report.tar.gz") as tar:
        entries = tar.getmembers()
        assert {(each.uid, each.uname, each.mode) for each in entries} == {(0, "", 0o600)}
        assert {each.name.partition("/")[0] for each in entries} == {"report"}
        return {
            each.name.partition("/")[2]: (tar.extractfile(each) or pytest.fail()).read().decode()
            for each in entries
        }


def pieces(secret: str, length: int = 9) -> set[str]:
    return {secret[at : at + length] for at in range(len(secret) - length + 1)}


def test_no_planted_secret_is_in_any_member(planted: Any) -> None:
    texts = reported(planted)

    told = {
        (name, label)
        for name, text in texts.items()
        for label, secret in SECRETS.items()
        for shown in (text, text.replace("\n", ""), text.replace("\\n", "\n"))
        for way in (
            secret,
            quote(secret, safe=""),
            base64.b64encode(b"user:" + secret.encode()).decode()[8:-4],
            json.dumps(secret)[1:-1],
        )
        if any(piece in shown for piece in pieces(way))
    }
    assert told == set()
    raw = (planted.root / "report.tar.gz").read_bytes()
    assert not any(secret.encode() in raw for secret in SECRETS.values())


def test_members_say_what_helps_and_not_where_the_person_lives(planted: Any) -> None:
    texts = reported(planted)

    assert set(texts) == {
        "versions.json",
        "status.json",
        "doctor.json",
        "config.toml",
        "fermix.log",
        "unit.txt",
    }
    assert str(planted.root) not in "".join(texts.values())
    assert json.loads(texts["versions.json"])["fermix"] == "0.1.0"
    assert json.loads(texts["status.json"]) == {"error": "No daemon runs."}
    saw = " ".join(each["saw"] for each in json.loads(texts["doctor.json"])["findings"])
    assert "'~/home/secrets/unlisted' has mode 0644" in saw
    assert 'api_key = "@secret:stored"' in texts["config.toml"]
    assert 'model = "m"' in texts["config.toml"] and "port = 0" in texts["config.toml"]
    assert 'ExecStart="~/bin/fermix" run' in texts["unit.txt"]
    assert texts["fermix.log"].count(LOG) == 7 * len(SECRETS)


def test_running_daemon_is_asked(fermix: Any) -> None:
    daemon = FakeDaemon(fermix.home / "daemon.sock")
    daemon.on["status"] = lambda request: request.result(**status(home=str(fermix.home)))
    daemon.on["provider.probe"] = lambda request: request.error("method_unknown", "No such method.")
    try:
        told = json.loads(reported(fermix)["status.json"])
    finally:
        daemon.close()

    assert (told["pid"], told["home"]) == (4321, "~/home")


def test_it_goes_to_a_file_and_not_to_the_terminal(planted: Any) -> None:
    done = planted("bug-report", "--out", "-")

    assert (done.exit_code, done.stdout) == (2, "")
    assert not (planted.root / "-").exists()


def test_it_lists_what_it_wrote_and_asks_to_look(planted: Any) -> None:
    done = planted("bug-report")

    assert done.exit_code == 0, done
    (path,) = planted.root.glob("fermix-bug-report-*.tar.gz")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert all(name in done.stdout for name in ("status.json", "doctor.json", "config.toml", "fermix.log"))
    assert "before you send it" in done.stdout
    assert path.name in done.stdout


def test_json_names_path_and_files(planted: Any) -> None:
    done = planted("bug-report", "--json", "--out", "mine.tar.gz")

    answer = json.loads(done.stdout)
    assert answer["path"] == str(planted.root / "mine.tar.gz")
    assert answer["files"]["fermix.log"] > 0


def test_only_the_end_of_a_long_log_is_taken(planted: Any) -> None:
    put(planted.home / "logs/fermix.log", "".join(f"{LOG}line {number}\n" for number in range(2500)))

    log = reported(planted)["fermix.log"].splitlines()

    assert (len(log), log[0], log[-1]) == (2000, f"{LOG}line 500", f"{LOG}line 2499")


def test_nothing_is_overwritten(planted: Any) -> None:
    (planted.root / "mine.tar.gz").write_text("mine")

    done = planted("bug-report", "--out", "mine.tar.gz")

    assert done.exit_code == 1
    assert "try: " in done.stderr
    assert (planted.root / "mine.tar.gz").read_text() == "mine"


def test_place_that_cannot_be_written_is_told(planted: Any) -> None:
    done = planted("bug-report", "--out", "/proc/none/x.tar.gz")

    assert done.exit_code == 1
    assert "'/proc/none/x.tar.gz' cannot be written" in done.stderr


@pytest.mark.parametrize(
    "raw", [b"\0\xff\xfe", b'[a\napi_key = "Half-written-Key', b'k = """secret\ntext', b""]
)
def test_broken_home_is_reported_all_the_same(fermix: Any, raw: bytes) -> None:
    fermix.home.mkdir(mode=0o755)
    (fermix.home / "config.toml").write_bytes(raw)
    (fermix.home / "memory.db").write_bytes(b"garbage")

    texts = reported(fermix)

    assert "Half-written" not in texts["config.toml"]
    assert json.loads(texts["doctor.json"])["failed"] >= 2


def test_home_that_is_not_there_is_reported_and_not_made(fermix: Any) -> None:
    assert json.loads(reported(fermix)["doctor.json"])["failed"] == 0
    assert not fermix.home.exists()


def test_nothing_that_was_said_is_in_it(fermix: Any) -> None:
    """Also with a log that says as much as it can, and after a provider that repeats what it was sent."""
    fermix.home.mkdir(mode=0o700)
    rules = [{"when": "break", "then": [{"status": 400, "error": {"message": "no gardening-words-here"}}]}]
    script = read_script(json.dumps({"rules": rules, "default": {"say": "You said: {text}"}}).encode())
    with ModelServer(script=script) as server:
        put(
            fermix.home / "config.toml",
            '[http]\nport = 0\n[logs]\nlevel = "debug"\n[provider]\nname = "mine"\n[providers.mine]\n'
            f'base_url = "http://127.0.0.1:{server.port}/v1"\nmodel = "scripted"\n',
        )
        said = fermix("ask", "my gardening-words-here are private")
        fermix("ask", "break gardening-words-here")
        texts = reported(fermix)

    assert "gardening-words-here" in said.stdout, said
    assert "DEBUG" in texts["fermix.log"]
    assert [name for name, text in texts.items() if "gardening" in text] == []


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('[mystery]\nvalue = "hunter2"\n', '[mystery]\nvalue = "***"\n'),
        ('colour = "abc"\n[http]\nport = 1\n', 'colour = "***"\n[http]\nport = 1\n'),
        ('[[boxes]]\nname = "abc"\n', None),
        ('[providers.box]\nmodel = "m"  # mine\npin = 1234\n', None),
        ('"http.port" = 7391\n', '"http.port" = "***"\n'),
    ],
)
def test_what_stands_at_unknown_keys_is_masked(fermix: Any, written: str, shown: str | None) -> None:
    fermix.home.mkdir(mode=0o700)
    put(fermix.home / "config.toml", written)

    text = reported(fermix)["config.toml"]

    assert shown is None or text == shown
    assert all(value not in text for value in ("abc", "hunter2", "1234", "7391"))
    assert "model" not in written or 'model = "m"  # mine' in text
