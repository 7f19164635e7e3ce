"""A scripted daemon behind a real socket, and a person at a real terminal."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import select
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from fermix import __version__
from fermix.ipc.frames import FrameReader, encode


class Command(Protocol):
    """The `fermix` fixture, as far as these tests use it."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    home: Path
    root: Path

    def __call__(self, *words: str, **options: Any) -> Any: ...


class Request:
    """One request the scripted daemon got, and the way to answer it."""

    def __init__(self, link: socket.socket, request: dict[str, Any]) -> None:
        self._link = link
        self._id = request["id"]
        self.method: str = request["method"]
        self.params: dict[str, Any] = request["params"]
        self.cancelled = threading.Event()

    def event(self, seq: int, name: str, /, **data: object) -> None:
        self._send({"id": self._id, "event": {"seq": seq, "name": name, "data": data}})

    def result(self, **data: object) -> None:
        self._send({"id": self._id, "result": data})

    def error(self, code: str, message: str, hint: str | None = None) -> None:
        self._send({"id": self._id, "error": {"code": code, "message": message, "hint": hint}})

    def die(self) -> None:
        """Hang up, as a killed daemon does."""
        self._link.shutdown(socket.SHUT_RDWR)

    def accept(self, turn_id: str = "T1") -> None:
        self.event(0, "accepted", turn_id=turn_id, session=self.params.get("session", "main"))

    def say(self, *pieces: str) -> None:
        """Accept, stream the pieces, complete."""
        self.accept()
        for seq, piece in enumerate(pieces, start=1):
            self.event(seq, "text_delta", text=piece)
        self.complete("".join(pieces))

    def complete(self, text: str, status: str = "completed", **more: object) -> None:
        usage = {"input_tokens": 1, "output_tokens": 1, "cached_tokens": 0}
        self.result(turn_id="T1", session="main", text=text, status=status, usage=usage, **more)

    def _send(self, reply: dict[str, object]) -> None:
        self._link.sendall(encode(json.dumps(reply).encode()))


Answer = Callable[[Request], None]


@dataclass
class FakeDaemon:
    """Answers on the home's socket; `on[method]` says how, `requests` what was asked."""

    path: Path
    on: dict[str, Answer] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self._running: list[Request] = []
        self._stopped = threading.Event()
        self.on = {
            "status": lambda request: request.result(**status()),
            "message": lambda request: request.say("Hello."),
            "ack": lambda request: request.result(),
            "cancel": self._cancel,
            "sessions.messages": lambda request: request.result(messages=[]),
            "sessions.list": lambda request: request.result(sessions=[]),
        }
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.path))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The params of every request of this method so far."""
        return [request.params for request in self.requests if request.method == method]

    def wait_asked(self, method: str, count: int = 1) -> None:
        deadline = time.monotonic() + 10
        while len(self.asked(method)) < count:
            assert time.monotonic() < deadline, f"{method} was not asked"
            time.sleep(0.01)

    def close(self) -> None:
        self._stopped.set()
        self._socket.close()
        self.path.unlink(missing_ok=True)

    def _cancel(self, request: Request) -> None:
        for running in self._running:
            running.cancelled.set()
        request.result(cancelled=len(self._running))

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        reader = FrameReader()
        with link:
            while True:
                try:
                    data = link.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                for payload in reader.feed(data):
                    request = Request(link, json.loads(payload))
                    self.requests.append(request)
                    self._running.append(request)
                    try:
                        self.on[request.method](request)
                    except OSError:
                        return


def status(**changes: object) -> dict[str, object]:
    """What a healthy daemon says of itself."""
    return {
        "pid": 4321,
        "arbiter_pid": 4320,
        "version": __version__,
        "uptime_ms": 185_000,
        "state": "ready",
        "mode": "full",
        "http": "127.0.0.1:4030",
        "home": "/home/someone/.fermix",
        "turns": {"running": 1, "waiting": 2},
        "children": [
            {"name": "db", "state": "running", "restarts": 0, "last_error": None},
            {"name": "gateway", "state": "running", "restarts": 2, "last_error": "it broke"},
        ],
        "provider": {"name": "local", "model": "smollm2"},
        **changes,
    }


@pytest.fixture
def daemon(fermix: Command) -> Iterator[FakeDaemon]:
    """A scripted daemon that the `fermix` fixture's home reaches."""
    made = FakeDaemon(fermix.home / "daemon.sock")
    yield made
    made.close()


def _take_terminal() -> None:
    """Make standard input the controlling terminal, so that Ctrl-C becomes a signal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Person:
    """Types into a terminal and reads what stands there."""

    def __init__(self, command: Command, words: tuple[str, ...], *, columns: int, lines: int) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {**command.environment, "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        self._process = subprocess.Popen(
            [*command.argv, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            cwd=command.root,
            preexec_fn=_take_terminal,  # noqa: PLW1509 (the threads of this process are greenlets)
        )
        os.close(slave)
        self._terminal = master
        self.raw = ""
        """Everything the terminal was sent."""

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def sees(self, text: str, timeout_s: float = 15) -> str:
        """Wait until `text` was shown; everything shown so far, without control sequences."""
        deadline = time.monotonic() + timeout_s
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown, but: {self.shown!r}"
            self._read(0.1)
        return self.shown

    @property
    def shown(self) -> str:
        return re.sub(
            r"\x1b(\[[0-9;?<>=]*[a-zA-Z]|\][^\x07\x1b]*(\x07|\x1b\\)|[=>78])", "", self.raw
        ).replace("\r\n", "\n")

    def forget(self) -> None:
        """Look only at what comes from now on."""
        self._read(0.05)
        self.raw = ""

    def leaves(self, timeout_s: float = 15) -> int:
        """Wait for the command's end; its exit code."""
        deadline = time.monotonic() + timeout_s
        while self._process.poll() is None:
            assert time.monotonic() < deadline, f"still there, showing {self.shown!r}"
            self._read(0.05)
        self._read(0.05)
        return self._process.returncode

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed, as it did before the command."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(5)
        os.close(self._terminal)

    def _read(self, timeout_s: float) -> None:
        ready, _, _ = select.select([self._terminal], [], [], timeout_s)
        if not ready:
            return
        try:
            data = os.read(self._terminal, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # what a terminal says when its program has ended
                raise
            time.sleep(0.02)
            return
        if b"\x1b[6n" in data:  # "where is the cursor?"
            self.type("\x1b[1;1R")
        self.raw += data.decode("utf-8", "replace")


@pytest.fixture
def person(fermix: Command) -> Iterator[Callable[..., Person]]:
    """Starts a command at a terminal: `person("chat", columns=80, lines=24)`."""
    people: list[Person] = []

    def start(*words: str, columns: int = 80, lines: int = 24) -> Person:
        people.append(Person(fermix, words, columns=columns, lines=lines))
        return people[-1]

    yield start
    for each in people:
        each.close()
