"""`fermix auth`: signing in and out as a person does, through the real daemon to an issuer on loopback."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from fermix.testing.model_server import ModelServer
from tests.auth.issuer import Issuer, visit


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as made:
        yield made


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as made:
        made.always({"say": "You are in."})
        yield made


@pytest.fixture
def home(fermix: Any, issuer: Issuer, model: ModelServer) -> Iterator[Any]:
    """A home whose provider one signs in to; its daemon is ended."""
    fermix.home.mkdir(mode=0o700, exist_ok=True)
    path = fermix.home / "config.toml"
    path.write_text(
        '[provider]\nname = "openai_codex"\n[providers.openai_codex]\n'
        f'base_url = "{model.base_url}"\nsign_in_url = "{issuer.url}"\nmodel = "gpt-5.4"\n'
    )
    path.chmod(0o600)
    yield fermix.home
    fermix("stop")


def test_a_person_signs_in_with_a_code_asks_and_signs_out(
    fermix: Any, home: Any, issuer: Issuer, model: ModelServer
) -> None:
    before = fermix("ask", "hello")
    assert before.exit_code == 1 and "fermix auth login openai_codex" in before.stderr + before.stdout

    issuer.is_agreed = True
    done = fermix("auth", "login", "--device")
    assert done.exit_code == 0, done.stderr
    assert f"{issuer.url}/codex/device" in done.stdout and "ABCD-1234" in done.stdout
    assert "Signed in to openai_codex: me@example.org (plus)." in done.stdout
    issuer.user_code = "AB\x1b[2J-12"
    odd = fermix("auth", "login", "--device").stdout
    assert "AB" in odd and "\x1b" not in odd

    assert "You are in." in fermix("ask", "hello").stdout
    assert model.requests[-1].authorization.startswith("Bearer e30.")

    told = json.loads(fermix("auth", "status", "--json").stdout)["sign_ins"]
    assert [(each["name"], each["account"], each["ended"]) for each in told] == [
        ("openai_codex", "me@example.org", None)
    ]
    assert "refresh-" not in json.dumps(told)
    assert "me@example.org (plus)" in fermix("auth", "status").stdout

    assert fermix("auth", "logout").stdout == "Signed out of 'openai_codex'.\n"
    assert issuer.revoked and "Nobody is signed in" in fermix("auth", "status").stdout
    assert fermix("auth", "logout").stdout == "Nobody was signed in to 'openai_codex'.\n"
    assert fermix("ask", "hello").exit_code == 1


def test_a_browser_comes_back_and_json_stays_one_object(fermix: Any, home: Any, issuer: Issuer) -> None:
    process = subprocess.Popen(
        [*fermix.argv, "auth", "login", "--json"],
        env=fermix.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    found = None
    while found is None:
        line = process.stderr.readline()
        assert line, process.stdout.read()
        found = re.search(r"http://\S+/oauth/authorize\S+", line)
    with urllib.request.urlopen(visit(issuer, found.group()), timeout=20) as page:
        assert "You are signed in" in page.read().decode()
    out, _ = process.communicate(timeout=20)
    assert json.loads(out)["account"] == "me@example.org"


def test_a_provider_with_a_key_is_not_signed_in_to(fermix: Any, home: Any) -> None:
    done = fermix("auth", "login", "openai")
    assert done.exit_code == 2
    assert "One does not sign in to 'openai'. Available: openai_codex." in done.stderr
