"""[http]: what a reload changes while HTTP is served, and what a restart does."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.conftest import StubDaemon, until
from tests.settings.conftest import Lab

CERTIFICATE = Path(__file__).parents[1] / "fixtures/net/self-signed.pem"


def ask(lab: Lab, path: str, body: object = None, **headers: str) -> int:
    """The status of an HTTP answer."""
    data = None if body is None else json.dumps(body).encode()
    token = (lab.bot.home / "api-token").read_text().strip()
    told = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"http://{lab.bot.status()['http']}{path}", data, told)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_name_is_served_once_the_settings_have_it(lab: Lab) -> None:
    before = ask(lab, "/health/live", Host="box.example")

    assert lab.put(http={"names": ["box.example"]}) == ["http.names"]

    assert (before, ask(lab, "/health/live", Host="box.example")) == (403, 200)


def test_body_may_be_as_long_as_the_setting_says(lab: Lab) -> None:
    body = {"text": "x" * 2000}
    before = ask(lab, "/message", body)

    lab.put(http={"body_limit_bytes": 1024})

    assert (before, ask(lab, "/message", body)) == (200, 413)


@pytest.fixture
def daemon() -> Iterator[StubDaemon]:
    """A daemon of its own, to be stopped and started."""
    stub = StubDaemon()
    yield stub
    stub.end()


def restart_with(daemon: StubDaemon, key: str, **http: object) -> None:
    """Change a setting; a reload says that it waits, a restart takes it up."""
    daemon.configure(http=http)
    process = daemon.processes[-1]
    process.send_signal(signal.SIGHUP)
    until(lambda: f"Needs a restart: {key}" in daemon.log())
    assert daemon.get("/health/live")[0] == 200, "it goes on as it was"
    process.terminate()
    process.wait(15)
    daemon.start()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_port_is_another_after_a_restart(daemon: StubDaemon) -> None:
    daemon.start()
    port = free_port()

    restart_with(daemon, "http.port", port=port)

    assert daemon.url() == f"http://127.0.0.1:{port}"
    assert daemon.get("/health/live")[0] == 200


def test_address_is_another_after_a_restart(daemon: StubDaemon) -> None:
    daemon.start()

    restart_with(daemon, "http.host", host="127.0.0.2", port=0)

    assert daemon.url().startswith("http://127.0.0.2:")
    assert daemon.get("/health/live")[0] == 200


def test_http_is_off_after_a_restart(daemon: StubDaemon) -> None:
    daemon.start()
    before = daemon.log().count("http://")

    restart_with(daemon, "http.enabled", enabled=False)

    assert daemon.ping()
    assert daemon.log().count("http://") == before


def test_https_is_served_with_the_certificate_and_key_after_a_restart(
    daemon: StubDaemon, tmp_path: Path
) -> None:
    key = tmp_path / "key.pem"
    shutil.copy(CERTIFICATE, key)
    key.chmod(0o600)
    daemon.start()

    restart_with(
        daemon,
        "http.tls_certificate, http.tls_key",
        port=0,
        tls_certificate=str(CERTIFICATE),
        tls_key=str(key),
    )

    address = re.findall(r"Listens on https://([\d.:]+)", daemon.log())[-1]
    trust = ssl._create_unverified_context()
    with urllib.request.urlopen(f"https://{address}/health/live", timeout=5, context=trust) as answer:
        assert answer.status == 200
