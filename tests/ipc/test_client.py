"""The client's end of the control socket, against a scripted other end."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fermix.errors import DaemonLost, DeadlineExceeded, FermixError, NotRunning, OwnerError, ProtocolError
from fermix.ipc.client import Event, Result, open_connection
from fermix.ipc.following import TurnWatch
from fermix.ipc.frames import FrameReader, encode

Script = Callable[["Link"], None]


class Link:
    """The daemon's end of one accepted connection."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.reader = FrameReader()
        self.waiting: list[bytes] = []

    def request(self) -> dict[str, Any]:
        while not self.waiting:
            data = self.link.recv(65536)
            if not data:
                raise EOFError
            self.waiting += self.reader.feed(data)
        return json.loads(self.waiting.pop(0))

    def reply(self, **reply: object) -> None:
        self.link.sendall(encode(json.dumps(reply).encode()))

    def event(self, request: dict[str, Any], seq: int, name: str, **data: object) -> None:
        self.reply(id=request["id"], event={"seq": seq, "name": name, "data": data})


class Listener:
    """Plays one script per connection, in the order they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.requests: list[dict[str, Any]] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._threads: list[threading.Thread] = []

    def play(self, *scripts: Script) -> None:
        def serve() -> None:
            for script in scripts:
                link, _ = self._socket.accept()
                with link:
                    script(Link(link))

        thread = threading.Thread(target=serve)
        thread.start()
        self._threads.append(thread)

    def close(self) -> None:
        for thread in self._threads:
            thread.join(5)
        self._socket.close()


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    made = Listener(tmp_path / "daemon.sock")
    yield made
    made.close()


def test_call_returns_the_result_of_its_own_request(listener: Listener) -> None:
    def script(link: Link) -> None:
        request = link.request()
        link.reply(id=999, result={"other": True})
        link.reply(id=request["id"], result={"asked": request["method"], "v": request["v"]})

    listener.play(script)
    with open_connection(listener.path) as connection:
        assert connection.call("status", {}, 5) == {"asked": "status", "v": 1}


def test_stream_yields_events_then_the_result_and_ends(listener: Listener) -> None:
    def script(link: Link) -> None:
        request = link.request()
        link.event(request, 0, "accepted", turn_id="t")
        link.event(request, 1, "text_delta", text="hé")
        link.reply(id=request["id"], unheard_of=1)
        link.reply(id=request["id"], result={"text": "hé"})

    listener.play(script)
    with open_connection(listener.path) as connection:
        answers = list(connection.stream("message", {"text": "x"}, 5))

    assert answers == [
        Event(0, "accepted", {"turn_id": "t"}),
        Event(1, "text_delta", {"text": "hé"}),
        Result({"text": "hé"}),
    ]


def test_missing_socket_means_not_running(tmp_path: Path) -> None:
    with pytest.raises(NotRunning):
        open_connection(tmp_path / "daemon.sock")


def test_stale_socket_means_not_running(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "daemon.sock"))

    with pytest.raises(NotRunning):
        open_connection(tmp_path / "daemon.sock")


def test_regular_file_in_place_of_the_socket_means_not_running(tmp_path: Path) -> None:
    (tmp_path / "daemon.sock").write_text("mine")

    with pytest.raises(NotRunning):
        open_connection(tmp_path / "daemon.sock")


def test_socket_of_somebody_else_is_told_with_a_way_out(tmp_path: Path) -> None:
    tmp_path.chmod(0o000)
    user = os.geteuid()
    if user == 0:  # whom no mode keeps out
        os.seteuid(65534)
    try:
        with pytest.raises(
            OwnerError, match=r"daemon.sock' cannot be used: Permission denied\.$"
        ) as refused:
            open_connection(tmp_path / "daemon.sock")
    finally:
        os.seteuid(user)
        tmp_path.chmod(0o700)

    assert refused.value.hint == "set FERMIX_HOME to a folder of yours"


def test_full_backlog_is_waited_for_and_then_told(tmp_path: Path) -> None:
    path = tmp_path / "daemon.sock"
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(path))
        deaf.listen(0)
        with open_connection(path), pytest.raises(DeadlineExceeded, match="no more connections"):
            open_connection(path, timeout_s=0.2)


def test_error_keeps_the_daemons_code_message_and_hint(listener: Listener) -> None:
    def script(link: Link) -> None:
        request = link.request()
        error = {
            "code": "session_unknown",
            "message": "No session named 'x'.",
            "hint": "fermix sessions list",
        }
        link.reply(id=request["id"], error=error)

    listener.play(script)
    with open_connection(listener.path) as connection, pytest.raises(FermixError) as told:
        connection.call("sessions.messages", {}, 5)

    assert (told.value.code, told.value.message, told.value.hint) == (
        "session_unknown",
        "No session named 'x'.",
        "fermix sessions list",
    )


@pytest.mark.parametrize("code", ["daemon_too_old", "client_too_old"])
def test_version_out_of_the_window_hints_at_a_restart(listener: Listener, code: str) -> None:
    def script(link: Link) -> None:
        link.request()
        link.reply(id=None, error={"code": code, "message": "Protocol 1 is not served."})

    listener.play(script)
    with open_connection(listener.path) as connection, pytest.raises(FermixError) as told:
        connection.call("status", {}, 5)

    assert (told.value.code, told.value.hint) == (code, "fermix restart")


def test_silent_daemon_ends_a_call_at_its_time(listener: Listener) -> None:
    done = threading.Event()

    def says_nothing(link: Link) -> None:
        link.request()
        done.wait(5)

    listener.play(says_nothing)
    with (
        open_connection(listener.path) as connection,
        pytest.raises(DeadlineExceeded, match=r"'status' within 0\.2 s"),
    ):
        connection.call("status", {}, 0.2)
    done.set()


def test_daemon_that_dies_in_the_middle_of_a_frame_is_told(listener: Listener) -> None:
    def script(link: Link) -> None:
        link.request()
        link.link.sendall(encode(b'{"id":1}')[:6])

    listener.play(script)
    with open_connection(listener.path) as connection, pytest.raises(DaemonLost):
        connection.call("status", {}, 5)


def test_reason_of_a_daemon_that_answers_and_hangs_up_is_still_read(listener: Listener) -> None:
    hung_up = threading.Event()

    def script(link: Link) -> None:
        link.reply(id=None, error={"code": "busy", "message": "Too many connections."})
        link.link.shutdown(socket.SHUT_RDWR)
        link.link.close()
        hung_up.set()

    listener.play(script)
    with open_connection(listener.path) as connection:
        assert hung_up.wait(5)
        with pytest.raises(FermixError, match="Too many connections"):
            connection.call("status", {}, 5)


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "expected an object"),
        (b'{"id":1,"result":3}', "expected an object"),
        (b'{"id":1,"event":{"seq":"a"}}', "without 'seq'"),
        (b'{"id":1,"error":"boom"}', "without a code"),
    ],
)
def test_reply_that_cannot_be_read_is_a_protocol_error(
    listener: Listener, payload: bytes, what: str
) -> None:
    def script(link: Link) -> None:
        link.request()
        link.link.sendall(encode(payload))

    listener.play(script)
    with open_connection(listener.path) as connection, pytest.raises(ProtocolError, match=what):
        connection.call("status", {}, 5)


def test_oversized_reply_is_refused(listener: Listener) -> None:
    def script(link: Link) -> None:
        link.request()
        link.link.sendall(b"\xff\xff\xff\xff")

    listener.play(script)
    with open_connection(listener.path) as connection, pytest.raises(ProtocolError) as refusal:
        connection.call("status", {}, 5)

    assert refusal.value.code == "frame_too_large"


def test_oversized_request_is_refused_before_it_is_sent(listener: Listener) -> None:
    listener.play(lambda link: None)
    with open_connection(listener.path) as connection, pytest.raises(ProtocolError) as refusal:
        connection.call("message", {"text": "x" * (5 * 1024 * 1024)}, 5)

    assert refusal.value.code == "frame_too_large"


def test_peer_pid_is_the_process_that_listens(listener: Listener) -> None:
    listener.play(lambda link: None)
    with open_connection(listener.path) as connection:
        assert connection.peer_pid() == os.getpid()


def watched(watch: TurnWatch, limit_s: float = 5.0) -> list[Event | Result]:
    """Everything a watch gives until its result."""
    answers: list[Event | Result] = []
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        answer = watch.read(0.1)
        if answer is not None:
            answers.append(answer)
        if isinstance(answer, Result):
            break
    watch.close()
    return answers


def test_watch_resumes_after_the_last_event_it_saw(listener: Listener) -> None:
    seen: list[dict[str, Any]] = []

    def dies(link: Link) -> None:
        request = link.request()
        link.event(request, 0, "accepted", turn_id="T1", session="main")
        link.event(request, 1, "text_delta", text="Hel")

    def comes_back(link: Link) -> None:
        request = link.request()
        seen.append(request)
        link.event(request, 1, "text_delta", text="Hel")
        link.event(request, 2, "text_delta", text="lo")
        link.reply(id=request["id"], result={"text": "Hello"})

    listener.play(dies, comes_back)
    watch = TurnWatch(
        lambda: open_connection(listener.path), {"text": "hi", "client_id": "C"}, patience_s=5
    )
    answers = watched(watch)

    assert seen[0]["method"] == "resume"
    assert seen[0]["params"] == {"turn_id": "T1", "after_seq": 1}
    texts = [
        answer.data["text"]
        for answer in answers
        if isinstance(answer, Event) and answer.name == "text_delta"
    ]
    assert texts == ["Hel", "lo"]
    assert answers[-1] == Result({"text": "Hello"})


def test_watch_sends_the_same_message_again_when_it_was_not_accepted(listener: Listener) -> None:
    seen: list[dict[str, Any]] = []

    def dies(link: Link) -> None:
        seen.append(link.request())

    def comes_back(link: Link) -> None:
        request = link.request()
        seen.append(request)
        link.event(request, 0, "accepted", turn_id="T1", session="main")
        link.reply(id=request["id"], result={"text": "ok"})

    listener.play(dies, comes_back)
    watch = TurnWatch(
        lambda: open_connection(listener.path), {"text": "hi", "client_id": "C"}, patience_s=5
    )
    answers = watched(watch)

    assert [request["params"]["client_id"] for request in seen] == ["C", "C"]
    assert answers[-1] == Result({"text": "ok"})


def test_watch_gives_up_when_the_daemon_stays_away(listener: Listener) -> None:
    def dies(link: Link) -> None:
        request = link.request()
        link.event(request, 0, "accepted", turn_id="T1", session="main")
        listener.path.unlink()

    listener.play(dies)
    watch = TurnWatch(
        lambda: open_connection(listener.path), {"text": "hi", "client_id": "C"}, patience_s=0.5
    )

    with pytest.raises(DaemonLost, match="did not come back"):
        watched(watch)


def test_watch_passes_on_what_the_daemon_refuses(listener: Listener) -> None:
    def refuses(link: Link) -> None:
        request = link.request()
        link.reply(id=request["id"], error={"code": "empty", "message": "An empty message."})

    listener.play(refuses)
    watch = TurnWatch(lambda: open_connection(listener.path), {"text": "", "client_id": "C"}, patience_s=5)

    with pytest.raises(FermixError, match="An empty message"):
        watched(watch)


def test_cancel_and_acknowledgement_name_the_turn(listener: Listener) -> None:
    seen: list[dict[str, Any]] = []
    cancelled = threading.Event()

    def stream(link: Link) -> None:
        request = link.request()
        link.event(request, 0, "accepted", turn_id="T1", session="main")
        cancelled.wait(5)
        link.reply(id=request["id"], result={"status": "cancelled"})
        request = link.request()
        seen.append(request)
        link.reply(id=request["id"], result={})

    def serve_cancel(link: Link) -> None:
        request = link.request()
        seen.append(request)
        link.reply(id=request["id"], result={"cancelled": 1})
        cancelled.set()

    def both(link: Link) -> None:
        thread = threading.Thread(target=stream, args=(link,))
        thread.start()
        other, _ = listener._socket.accept()
        with other:
            serve_cancel(Link(other))
        thread.join(5)

    listener.play(both)
    watch = TurnWatch(
        lambda: open_connection(listener.path), {"text": "hi", "client_id": "C"}, patience_s=5
    )
    assert watch.read(5) == Event(0, "accepted", {"turn_id": "T1", "session": "main"})
    watch.cancel()
    assert watch.read(5) == Result({"status": "cancelled"})
    watch.acknowledge()
    watch.close()

    assert [(request["method"], request["params"]) for request in seen] == [
        ("cancel", {"turn_id": "T1"}),
        ("ack", {"turn_id": "T1"}),
    ]
