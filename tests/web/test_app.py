"""What HTTP answers, to whom, and what it refuses."""

from __future__ import annotations

import pytest

from fermix.web.health import DaemonState


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (DaemonState.STARTING, 503),
        (DaemonState.READY, 200),
        (DaemonState.DEGRADED, 200),
        (DaemonState.DRAINING, 503),
    ],
)
def test_ready_says_whether_messages_are_taken_in(service, status, code):
    service.daemon.status = status

    answer = service.send("GET", "/health/ready", token=None)

    assert (answer.status, answer.json) == (code, {"status": str(status)})
    assert service.send("GET", "/health/live", token=None).status == 200


def test_health_shows_every_part_and_check_to_whoever_shows_a_token(service):
    answer = service.send("GET", "/health")

    assert answer.status == 200
    assert answer.json["children"][1] == {
        "name": "channels/x",
        "state": "backoff",
        "restarts": 3,
        "last_error": "no route",
        "since_ms": 9,
    }
    assert answer.json["checks"] == [{"name": "disk", "is_ok": True, "detail": "3 GB free"}]


def test_health_is_told_while_it_starts_though_no_token_can_be_checked_yet(service):
    service.daemon.status = DaemonState.STARTING

    answer = service.send("GET", "/health")

    assert (answer.status, answer.json) == (503, {"status": "starting"})


def test_health_tells_a_stranger_one_word(service):
    assert service.send("GET", "/health", token=None).json == {"status": "ready"}


def test_every_answer_forbids_what_no_answer_needs(service):
    for answer in (
        service.send("GET", "/health"),
        service.send("GET", "/nothing"),
        service.send("POST", "/message", {"text": "hi"}),
        service.send("POST", "/message", {"text": "hi"}, headers={"Accept": "text/event-stream"}),
    ):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("path", "method", "code", "error"),
    [
        ("/", "GET", 404, "path_unknown"),
        ("/static/x", "GET", 404, "path_unknown"),
        ("/?gatewayUrl=ws://203.0.113.7/", "GET", 404, "path_unknown"),
        ("/sessions?gatewayUrl=ws://203.0.113.7/", "GET", 400, "query_invalid"),
        ("/health", "POST", 405, "method_refused"),
        ("/message", "GET", 405, "method_refused"),
        ("/message", "OPTIONS", 405, "method_refused"),
        ("/sessions/%ff/messages", "GET", 400, "path_invalid"),
        ("/sessions//messages", "GET", 404, "path_unknown"),
        ("/sessions?limit=0", "GET", 400, "query_invalid"),
        ("/sessions?limit=many", "GET", 400, "query_invalid"),
        ("/sessions?limit=1&limit=2", "GET", 400, "query_invalid"),
        ("/sessions?lim=1", "GET", 400, "query_invalid"),
        ("/sessions?limit=%ff", "GET", 400, "query_invalid"),
        ("/sessions?" + "&".join(f"a{number}=1" for number in range(100)), "GET", 400, "query_invalid"),
        ("/sessions/nobody", "GET", 404, "session_unknown"),
        ("/sessions/a%2Fb", "GET", 404, "session_unknown"),
        ("/turns/nothing", "GET", 404, "turn_unknown"),
    ],
)
def test_what_cannot_be_served_is_refused_in_json(service, path, method, code, error):
    answer = service.send(method, path)

    assert (answer.status, answer.code) == (code, error)
    assert set(answer.json["error"]) == {"code", "message", "hint"}


def test_a_refused_method_is_told_which_there_are(service):
    assert service.send("DELETE", "/sessions/x/export").headers["allow"] == "GET"


def test_while_it_starts_messages_are_asked_to_come_again(service):
    service.daemon.status = DaemonState.STARTING

    answer = service.send("POST", "/message", {"text": "hi"})

    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "not_ready", "1")


def test_a_fault_inside_is_answered_and_told_without_its_secret(service, caplog):
    def broken(*args, **kwargs):
        raise ValueError("a bug")

    service.desk.sessions = broken

    answer = service.send("GET", "/sessions")

    assert (answer.status, answer.code) == (500, "failed")
    assert "a bug" not in answer.body.decode()
    assert "a bug" in caplog.text
