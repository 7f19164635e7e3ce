"""`POST /message` and `/turns`: the answer whole or as events, gone on with, waited for, taken back."""

from __future__ import annotations

import gevent
import pytest

from fermix.errors import Draining, QueueFull, StoreFull, UsageError
from fermix.gateway.watch import first_seq
from fermix.ids import new_id
from tests.web.service import USAGE, Reply, parse, parse_events, read_all, read_until, until

EVENTS = {"Accept": "text/event-stream"}
MINE = new_id(7)


def say(service, body: object = None, **headers: str) -> Reply:
    return service.send("POST", "/message", body or {"text": "hi"}, headers=headers)


def test_a_message_is_answered_whole(service):
    answer = say(service, {"text": "hi", "session": "work", "client_id": MINE})

    turn_id = next(iter(service.desk.entries))
    assert answer.json == {
        "turn_id": turn_id,
        "session": "work",
        "status": "completed",
        "text": "Hello.",
        "usage": USAGE,
        "client_id": MINE,
    }
    assert service.desk.senders == ["http api-token"]
    assert service.desk.is_delivered == [turn_id]


def test_a_turn_that_failed_is_answered_with_its_error(service):
    service.desk.script = None
    with_answer = gevent.spawn(say, service)
    until(lambda: service.desk.words)
    service.desk.last.publish(
        "done",
        status="failed",
        text="No.",
        usage=USAGE,
        error={"code": "x", "message": "No.", "hint": None},
    )

    answer = with_answer.get(timeout=10)

    assert (answer.status, answer.json["status"]) == (200, "failed")
    assert answer.json["error"] == {"code": "x", "message": "No.", "hint": None}


def test_a_message_is_answered_as_events_with_done_last(service):
    answer = say(service, **EVENTS)

    assert answer.headers["content-type"] == "text/event-stream"
    assert [(id, name) for id, name, _ in answer.events] == [
        ("0", "accepted"),
        ("1", "text_delta"),
        ("2", "done"),
    ]
    accepted = answer.events[0][2]
    assert accepted["session"] == "main"
    assert len(accepted["client_id"]) == 26
    assert answer.events[-1][2]["status"] == "completed"
    assert service.desk.is_delivered == [accepted["turn_id"]]


def test_a_stream_goes_on_after_the_event_the_client_saw_last(service):
    body = {"text": "hi", "client_id": MINE}
    say(service, body, **EVENTS)

    again = say(service, body, **EVENTS, **{"Last-Event-ID": "1"})

    assert [(id, name) for id, name, _ in again.events] == [("1", "accepted"), ("2", "done")]
    assert len(service.desk.words) == 1


def test_whoever_has_seen_the_end_is_told_it_again(service):
    body = {"text": "hi", "client_id": MINE}
    say(service, body, **EVENTS)

    again = say(service, body, **EVENTS, **{"Last-Event-ID": "2"})

    assert [name for _, name, _ in again.events] == ["accepted", "done"]


def test_a_turns_second_life_is_numbered_on(service):
    service.desk.script = None
    link = service.stream({"text": "hi", "client_id": MINE})
    until(lambda: service.desk.words)
    log = service.desk.last
    log.publish("text_delta", text="Hel")
    log.start_life(2)
    log.publish("restarted")
    service.desk.finish(log)

    ids = [id for id, _, _ in parse(read_all(link)).events]

    assert ids == ["0", "1", str(first_seq(2)), str(first_seq(2) + 1)]


@pytest.mark.parametrize("id", ["-1", "1.5", "abc", "9" * 30, "٣"])
def test_an_id_that_is_none_is_refused(service, id):
    body = {"text": "hi", "client_id": MINE}

    answer = parse(service.raw(service.request("POST", "/message", body, headers={"Last-Event-ID": id})))

    assert (answer.status, answer.code) == (400, "last_event_id_invalid")


def test_going_on_needs_the_message_it_goes_on_with(service):
    answer = say(service, **{"Last-Event-ID": "3"})

    assert (answer.status, answer.code) == (400, "client_id_missing")


def test_two_clients_with_one_id_read_one_turn(service):
    service.desk.script = None
    body = {"text": "hi", "client_id": MINE}
    links = [service.stream(body), service.stream(body)]
    for link in links:
        read_until(link, b"accepted")
    service.desk.last.publish("text_delta", text="Hello.")
    service.desk.finish(service.desk.last)

    ends = [read_all(link) for link in links]

    assert len(service.desk.words) == 1
    assert all(b"event: text_delta" in end and b"event: done" in end for end in ends)


def test_a_quiet_stream_is_kept_alive(service):
    service.set(keep_alive_s=0.1)
    service.desk.script = None
    link = service.stream({"text": "hi"})

    read_until(link, b": keep-alive\n\n")


def test_a_client_that_hangs_up_stops_nothing_and_has_got_nothing(service):
    service.desk.script = None
    whole, streamed = service.connect(), service.stream({"text": "one"})
    whole.sendall(service.request("POST", "/message", {"text": "two"}))
    until(lambda: len(service.desk.words) == 2)
    read_until(streamed, b"accepted")

    streamed.close()
    whole.close()
    turns = list(service.desk.logs.values())
    wait_for_a_free_place(service)
    for log in turns:
        service.desk.finish(log)
    wait_for_a_free_place(service)

    assert service.desk.cancelled == []
    assert not {log.turn_id for log in turns} & set(service.desk.is_delivered)


def test_a_client_that_leaves_just_before_the_end_has_got_nothing(service):
    service.desk.script = None
    link = service.stream({"text": "one"})
    read_until(link, b"accepted")
    log = service.desk.last

    link.close()
    service.desk.finish(log)
    wait_for_a_free_place(service)

    assert log.turn_id not in service.desk.is_delivered


def wait_for_a_free_place(service) -> None:
    """Until nobody waits for an answer any more; a message of its own finds that out."""
    service.set(streams=1)
    service.desk.script = []
    until(lambda: say(service, {"text": "is there room?"}).status == 200)


def test_more_answers_than_allowed_are_not_waited_for(service):
    service.set(streams=1)
    service.desk.script = None
    link = service.stream({"text": "one"})
    read_until(link, b"accepted")

    answer = say(service, {"text": "two", "client_id": MINE})
    service.desk.finish(service.desk.logs[next(iter(service.desk.logs))])
    read_all(link)

    assert (answer.status, answer.code) == (429, "too_many_streams")
    assert [words.text for words in service.desk.words] == ["one"]  # what was refused was not taken
    assert "retry-after" in answer.headers


def test_a_revoked_token_ends_its_stream_and_no_other(service):
    service.desk.script = None
    token = service.daemon.tokens_.create("phone").reveal()
    theirs = service.stream({"text": "one"}, Authorization=f"Bearer {token}")
    mine = service.stream({"text": "two"})
    read_until(theirs, b"accepted")
    read_until(mine, b"accepted")

    service.daemon.tokens_.revoke("phone")
    service.desk.logs[next(iter(service.desk.logs))].publish("text_delta", text="secret")
    last = read_all(theirs)

    assert b"token_revoked" in last
    assert b"secret" not in last
    service.desk.finish(service.desk.last)
    assert b"event: done" in read_all(mine)
    assert service.desk.cancelled == []


def test_an_end_that_was_not_shown_to_a_revoked_token_is_not_delivered(service):
    service.desk.script = None
    token = service.daemon.tokens_.create("phone").reveal()
    link = service.stream({"text": "one"}, Authorization=f"Bearer {token}")
    read_until(link, b"accepted")

    service.daemon.tokens_.revoke("phone")
    service.desk.finish(service.desk.last)

    assert b"event: done" not in read_all(link)
    assert service.desk.is_delivered == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "json_invalid"),
        (b"{", "json_invalid"),
        (b"\xff\xfe", "json_invalid"),
        (b"[" * 50_000, "body_invalid"),
        (b'{"text": ' + b"[" * 50_000, "body_invalid"),
        (b'{"text":"a","x":' + b"[" * 50_000, "body_invalid"),
        (b"[]", "body_invalid"),
        (b"{}", "body_invalid"),
        (b'{"text": 1}', "body_invalid"),
        (b'{"text": null}', "body_invalid"),
        (b'{"text": "a", "sesion": "b"}', "body_invalid"),
        (b'{"text": "\\ud800"}', "json_invalid"),
        (b'{"text": "a", "attachments": {}}', "body_invalid"),
    ],
)
def test_a_body_that_makes_no_sense_is_named(service, body, code):
    answer = service.send("POST", "/message", body)

    assert (answer.status, answer.code) == (400, code)
    assert len(answer.body) < 1000


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("Empty."), 400),
        (QueueFull("Full."), 429),
        (Draining("Stopping."), 503),
        (StoreFull("Disk full."), 503),
    ],
)
def test_what_the_daemon_refuses_has_its_status(service, error, status):
    def refuse(*args, **kwargs):
        raise error

    service.desk.submit = refuse

    answer = say(service)

    assert (answer.status, answer.code) == (status, error.code)
    assert ("retry-after" in answer.headers) == (status in (429, 503))


def test_refusals_show_no_secret_the_daemon_knows(service, monkeypatch):
    from fermix.telemetry.lines import set_redaction

    def refuse(*args, **kwargs):
        raise UsageError(f"Not with {service.token}.", hint=f"Try without {service.token}")

    service.desk.submit = refuse
    set_redaction(service.daemon.redactor.redact)
    try:
        answer = say(service)
    finally:
        set_redaction(None)

    assert answer.json["error"]["message"] == "Not with ***."
    assert service.token not in answer.body.decode()


def test_a_turn_is_shown_while_it_runs_and_when_it_is_over(service):
    service.desk.script = None
    service.stream({"text": "hi"})
    until(lambda: service.desk.words)
    turn_id = service.desk.last.turn_id

    running = service.send("GET", f"/turns/{turn_id}").json
    service.desk.finish(service.desk.last)
    over = service.send("GET", f"/turns/{turn_id}").json

    assert running == {"turn_id": turn_id, "session": "main", "status": "running"}
    assert (over["status"], over["text"], over["usage"]) == ("completed", "Hello.", USAGE)
    assert turn_id in service.desk.is_delivered


def test_a_turns_events_are_read_again(service):
    say(service)
    turn_id = next(iter(service.desk.entries))

    answer = service.send("GET", f"/turns/{turn_id}/events", headers={"Last-Event-ID": "1"})

    assert [(id, name) for id, name, _ in answer.events] == [("1", "accepted"), ("2", "done")]


def test_turns_are_cancelled_one_by_one_and_by_session(service):
    say(service)
    turn_id = next(iter(service.desk.entries))

    one = service.send("POST", f"/turns/{turn_id}/cancel")
    all_ = service.send("POST", "/sessions/a%2Fb/cancel")

    assert (one.json, all_.json) == ({"cancelled": 1}, {"cancelled": 2})
    assert service.desk.cancelled == [turn_id, "a/b"]
    assert service.send("POST", f"/turns/{MINE}/cancel").code == "turn_unknown"


def test_an_upload_is_taken_in_pieces_and_named_in_a_message(service):
    first = service.send("POST", "/uploads", b"a" * 2_500_000).json
    blob_id = first["blob_id"]
    second = service.send("POST", f"/uploads?blob_id={blob_id}", b"b").json
    say(service, {"text": "look", "attachments": [{"blob_id": blob_id, "name": "a.txt"}]})

    assert (first["size_bytes"], second) == (2_500_000, {"blob_id": blob_id, "size_bytes": 2_500_001})
    assert service.desk.words[0].attachments[0].blob_id == blob_id


def test_an_upload_over_its_limit_is_refused(service):
    service.set(upload_limit_bytes=2_000)

    assert service.send("POST", "/uploads", b"a" * 3_000).code == "body_too_large"
    assert service.desk.uploads == {}


def test_an_event_is_one_block_whatever_its_text(service):
    service.desk.script = [("text_delta", {"text": "a\n\ndata: {}\nid: 99\r\nevent: done"})]

    answer = say(service, **EVENTS)

    assert [name for _, name, _ in answer.events] == ["accepted", "text_delta", "done"]
    assert list(parse_events(answer.body.decode()))[1][2]["text"].startswith("a\n\ndata")
