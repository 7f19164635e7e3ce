"""What HTTP answers, to whom, and what it refuses."""

from __future__ import annotations

import pytest

from fermix.web.app import build_app
from fermix.web.health import Check, DaemonState, HealthReport, PartHealth
from fermix.web.settings import HttpSettings


class Daemon:
    """A DaemonControl in a state the test chooses."""

    def __init__(self) -> None:
        self.status = DaemonState.READY

    def health(self) -> HealthReport:
        return HealthReport(
            status=self.status,
            version="1.2.3",
            uptime_ms=5,
            pid=7,
            children=(PartHealth("db", "running"), PartHealth("channels/x", "backoff", 3, "no route", 9)),
            checks=(Check("disk", True, "3 GB free"),),
        )


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


@pytest.fixture
def client(daemon):
    return build_app(daemon, lambda: HttpSettings(names=("Fermix.example",))).test_client()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (DaemonState.STARTING, 503),
        (DaemonState.READY, 200),
        (DaemonState.DEGRADED, 200),
        (DaemonState.DRAINING, 503),
    ],
)
def test_ready_says_whether_messages_are_taken_in(client, daemon, status, code):
    daemon.status = status

    answer = client.get("/health/ready")

    assert (answer.status_code, answer.json) == (code, {"status": str(status)})
    assert client.get("/health/live").status_code == 200


def test_health_shows_every_part_and_check(client):
    answer = client.get("/health")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json["children"][1] == {
        "name": "channels/x",
        "state": "backoff",
        "restarts": 3,
        "last_error": "no route",
        "since_ms": 9,
    }
    assert answer.json["checks"] == [{"name": "disk", "is_ok": True, "detail": "3 GB free"}]


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:4030", "127.0.0.1:1", "[::1]:4030", "LOCALHOST", "fermix.example"]
)
def test_known_names_of_this_machine_are_served(client, host):
    assert client.get("/health/live", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:4030",
        "localhost@evil.example",
        "[",
        "",
        "a" * 5000,
    ],
)
def test_a_page_that_rebinds_its_name_to_loopback_is_refused(client, host):
    answer = client.get("/health", headers={"Host": host})

    assert (answer.status_code, answer.json["error"]["code"]) == (403, "host_refused")
    assert len(answer.data) < 600


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_a_page_of_another_site_is_refused(client, origin):
    answer = client.get("/health", headers={"Host": "localhost", "Origin": origin})

    assert (answer.status_code, answer.json["error"]["code"]) == (403, "origin_refused")


def test_a_page_of_this_machine_is_served(client):
    headers = {"Host": "localhost:4030", "Origin": "http://localhost:4030"}

    assert client.get("/health", headers=headers).status_code == 200


def test_a_large_body_is_refused_unread(client):
    answer = client.post("/health", headers={"Host": "localhost"}, data=b"x" * 70_000)

    assert (answer.status_code, answer.json["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("path", "method", "code"), [("/", "GET", 404), ("/static/x", "GET", 404), ("/health", "POST", 405)]
)
def test_nothing_else_is_served_and_the_refusal_is_json(client, path, method, code):
    answer = client.open(path, method=method, headers={"Host": "localhost"})

    assert answer.status_code == code
    assert "error" in answer.json


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.1.5", "::", "example.com", ""])
def test_an_address_that_others_can_reach_is_no_valid_setting(host):
    check = HttpSettings.__dataclass_fields__["host"].metadata["fermix.setting"].check

    assert check(host) == "a loopback address such as 127.0.0.1"
    assert check("::1") is None
