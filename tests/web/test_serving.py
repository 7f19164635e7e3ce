"""One connection: limits of size and time, broken framing, and what is left of a client that goes."""

from __future__ import annotations

import socket

import gevent
import pytest

from tests.web.service import parse, read_all, read_until, serving, until

HEAD = "POST /message HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
JSON = "Content-Type: application/json\r\n"


def raw(service, text: str) -> bytes:
    return service.raw(text.format(token=service.token).encode("latin-1"))


@pytest.mark.parametrize(
    "framing",
    [
        "Transfer-Encoding: \x0bchunked\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        "Content-Length: 6\r\nTransfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Content-Length: 6\r\nContent-Length: 7\r\n",
        "Content-Length: +6\r\n",
        "Content-Length: 6_0\r\n",
        "Content-Length: -1\r\n",
        "Content-Length : 6\r\n",
        " Content-Length: 6\r\n",
    ],
)
def test_a_body_two_servers_could_read_differently_is_refused_and_the_connection_closed(service, framing):
    smuggled = "GET /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"

    answer = raw(service, HEAD + JSON + framing + "\r\n0\r\n\r\nX" + smuggled)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert parse(answer).code == "request_invalid"
    assert service.desk.words == []


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET\r\n\r\n", 400),
        ("GET / HTTP/3.0\r\n\r\n", 400),
        ("get /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET /" + "a" * 9000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n" + "A: b\r\n" * 200 + "\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nA: " + "b" * 20_000 + "\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: local\x00host\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 200-maybe\r\n\r\n", 417),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n", 200),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)
def test_what_is_no_good_request_is_refused_in_json_with_its_own_status(service, request_text, status):
    answer = parse(raw(service, request_text))

    assert answer.status == status
    assert status == 200 or answer.json["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\n",
        b"5\r\nhello",
        b"5\r\nhelloXX0\r\n\r\n",
        b"-1\r\n\r\n",
        b"0" * 20_000,
        b"5;" + b"a" * 20_000,
    ],
)
def test_broken_chunks_are_refused_and_the_connection_closed(service, body):
    head = (HEAD + JSON + "Transfer-Encoding: chunked\r\n\r\n").format(token=service.token).encode()
    link = service.connect()
    link.sendall(head + body)
    link.shutdown(socket.SHUT_WR)

    answer = parse(read_all(link))

    assert answer.status == 400
    assert answer.headers["connection"] == "close"
    assert service.desk.words == []


def test_a_chunked_body_is_read(service):
    body = b'5\r\n{"tex\r\n8\r\nt":"hi"}\r\n0\r\n\r\n'
    head = (HEAD + JSON + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n").format(
        token=service.token
    )

    assert parse(service.raw(head.encode() + body)).status == 200


def test_an_endless_chunked_body_is_cut_off_at_its_limit(service):
    service.set(body_limit_bytes=100_000)
    link = service.connect()
    link.sendall((HEAD + JSON + "Transfer-Encoding: chunked\r\n\r\n").format(token=service.token).encode())
    piece = b"10000\r\n" + b"a" * 65_536 + b"\r\n"
    sent = 0
    try:
        while sent < 1_000_000_000:
            link.sendall(piece)
            sent += len(piece)
    except OSError:
        pass

    assert sent < 50_000_000
    assert service.send("GET", "/health/live").status == 200


def test_a_stranger_who_announces_a_gigabyte_is_refused_before_it_comes(service):
    head = (
        "POST /message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 1073741824\r\n\r\n"
    )

    answer = parse(service.raw(head.encode()))

    assert (answer.status, answer.code, answer.headers["connection"]) == (401, "token_missing", "close")


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (JSON + "Content-Length: 1073741824\r\n", 413, "body_too_large"),
        (JSON, 411, "length_required"),
        ("Content-Length: 2\r\n", 415, "content_type_refused"),
        ("Content-Type: text/plain\r\nContent-Length: 2\r\n", 415, "content_type_refused"),
        (
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\n",
            415,
            "content_type_refused",
        ),
        (
            "Content-Type: application/json; charset=utf-16\r\nContent-Length: 2\r\n",
            415,
            "content_type_refused",
        ),
    ],
)
def test_a_body_of_the_wrong_kind_or_size_is_refused_unread(service, head, status, code):
    answer = parse(raw(service, HEAD + head + "\r\n"))

    assert (answer.status, answer.code) == (status, code)


def test_the_usual_ways_to_write_the_content_type_are_taken(service):
    for kind in ("application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'):
        answer = service.send("POST", "/message", {"text": "hi"}, headers={"Content-Type": kind})

        assert answer.status == 200


def test_a_body_that_comes_too_slowly_is_given_up(service):
    service.set(request_timeout_s=0.2)

    answer = parse(raw(service, HEAD + JSON + "Content-Length: 100\r\n\r\nhalf"))

    assert (answer.status, answer.code, answer.headers["connection"]) == (408, "request_timeout", "close")


def test_a_head_that_comes_too_slowly_is_hung_up_on(service):
    service.set(idle_s=1)

    assert service.raw(b"GET /health/live HTTP/1.1\r\nHost: local") == b""


def test_a_body_is_asked_for_only_when_it_is_wanted(service):
    asking = HEAD + JSON + "Expect: 100-continue\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"

    def head(length: int) -> bytes:
        return asking.format(token=service.token, length=length).encode()

    refused = service.raw(head(1 << 30))
    link = service.connect()
    link.sendall(head(13))
    asked = read_until(link, b"\r\n\r\n")
    link.sendall(b'{"text":"hi"}')

    assert refused.startswith(b"HTTP/1.1 413 ")
    assert asked == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert parse(read_all(link)).json["text"] == "Hello."


def test_requests_on_one_connection_are_answered_in_order(service):
    first = service.request("GET", "/health/live", is_last=False)
    second = service.request("POST", "/message", {"text": "hi"}, is_last=False)
    third = service.request("GET", "/nothing")

    answers = service.raw(first + second + third)

    statuses = [line.split()[1] for line in answers.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert statuses == [b"200", b"200", b"404"]


def test_a_refused_body_is_never_taken_for_the_next_request(service):
    inner = service.request("POST", "/message", {"text": "smuggled"})
    outer = service.request("POST", "/nothing", inner, is_last=False)

    answers = service.raw(outer)

    assert answers.count(b"HTTP/1.1 ") == 1
    assert service.desk.words == []


def test_head_brings_no_body_and_exists_for_health_alone(service):
    assert service.send("HEAD", "/health/live").body == b""
    assert service.send("HEAD", "/sessions").status == 405


def test_newcomers_take_the_place_of_connections_that_ask_for_nothing(tmp_path):
    with serving(tmp_path, connections=8, idle_s=600) as service:
        silent = [service.connect() for _ in range(50)]
        for link in silent:
            link.sendall(b"GET /he")

        assert service.send("GET", "/health/live").status == 200
        until(lambda: sum(is_closed(link) for link in silent) >= 40)


def test_newcomers_take_the_place_of_bodies_that_do_not_come(tmp_path):
    with serving(tmp_path, connections=8) as service:
        head = (HEAD + JSON + "Content-Length: 100\r\n\r\n").format(token=service.token).encode()
        for _ in range(30):
            service.connect().sendall(head)

        assert service.send("GET", "/health/live").status == 200


def test_newcomers_take_the_place_of_clients_that_take_nothing(tmp_path):
    with serving(tmp_path, connections=8) as service:
        for _ in range(12):
            link = service.connect()
            link.setblocking(False)
            link.send(service.request("GET", "/openapi.json", is_last=False) * 400)
        gevent.sleep(0.5)

        with gevent.Timeout(5):
            assert service.send("GET", "/health/live").status == 200


def test_a_client_that_sends_many_requests_at_once_lets_others_go_first(service):
    first, modest, last = service.connect(), service.connect(), service.connect()
    gevent.sleep(0.05)

    many = service.request("GET", "/health/live", is_last=False) * 50
    for link, request in ((first, many), (modest, service.request("GET", "/health/live")), (last, many)):
        link.sendall(request)
    read_all(modest)

    for greedy in (first, last):
        assert greedy.recv(1_000_000).count(b"HTTP/1.1 200") < 5


def test_a_body_in_tiny_chunks_lets_others_go_first(service):
    first, modest, last = service.connect(), service.connect(), service.connect()
    gevent.sleep(0.05)
    head = (HEAD + JSON + "Transfer-Encoding: chunked\r\n\r\n").format(token=service.token).encode()

    many = head + b"1\r\n \r\n" * 30_000 + b"0\r\n\r\n"
    for link, request in ((first, many), (modest, service.request("GET", "/health/live")), (last, many)):
        link.sendall(request)
    read_all(modest)

    for greedy in (first, last):
        greedy.setblocking(False)
        with pytest.raises(BlockingIOError):
            greedy.recv(1)


def is_closed(link: socket.socket) -> bool:
    link.settimeout(0.01)
    try:
        return link.recv(1) == b""
    except TimeoutError:
        return False


def test_a_client_that_takes_nothing_is_hung_up_on(service):
    service.set(send_timeout_s=0.2)
    service.desk.script = None
    link = socket.socket()
    service.links.append(link)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(("127.0.0.1", service.port))
    link.sendall(
        service.request("POST", "/message", {"text": "hi"}, headers={"Accept": "text/event-stream"})
    )
    until(lambda: service.desk.words)
    for _ in range(200):
        service.desk.last.publish("tool_result", text="x" * 100_000)
    stalled = service.desk.last
    service.set(streams=1)
    service.desk.script = []
    until(lambda: service.send("POST", "/message", {"text": "is there room?"}).status == 200)
    service.desk.finish(stalled)

    assert b"event: done" not in read_all(link)
    assert stalled.turn_id not in service.desk.is_delivered


def test_thousands_of_bad_requests_leave_nothing_behind(service):
    import gc

    def count() -> int:
        gc.collect()
        return len(gc.get_objects())

    def misbehave(times: int) -> None:
        for number in range(times):
            link = service.connect()
            link.sendall(
                (
                    b"GET /x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                    b"POST /message HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer no\r\n\r\n",
                    b"\x00\x01\r\n\r\n",
                    b"POST /message HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
                )[number % 4]
            )
            link.shutdown(socket.SHUT_WR)
            read_all(link)
            link.close()
            service.links.remove(link)

    misbehave(200)
    before = count()
    misbehave(2_000)

    assert count() - before < 2_000
