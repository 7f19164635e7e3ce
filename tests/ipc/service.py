"""A control server with methods of the test's own, and raw clients."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec
from gevent.event import Event

from fermix.errors import UsageError
from fermix.ipc.frames import VERSION, FrameReader, encode
from fermix.ipc.server import Call, ControlServer, Method
from fermix.ipc.settings import ControlSettings
from fermix.tasks import sleep


class Words(msgspec.Struct):
    words: str = "x"


class Service:
    """Methods of the test, and the server before them."""

    def __init__(self, path: Path, **settings: object) -> None:
        self.path = path
        self.gate = Event()
        self.clients: list[Client] = []
        self.ended: list[str] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        methods = {
            "echo": Method(Words, lambda params, call: {"words": params.words}),
            "wait": Method(Words, self.wait),
            "stream": Method(Words, self.stream),
            "flood": Method(Words, self.flood),
            "refuse": Method(Words, self.refuse),
            "break": Method(Words, lambda params, call: {}[params.words]),
        }
        self.server = ControlServer(
            self.listener,
            methods,
            settings=lambda: ControlSettings(**settings),
            standing_of=lambda pid: None,
            redact=lambda text: text.replace("hunter2", "***"),
        ).start()

    def wait(self, params: Words, call: Call) -> Mapping[str, object]:
        self.gate.wait(10)
        self.ended.append(params.words)
        return {"words": params.words}

    def stream(self, params: Words, call: Call) -> Mapping[str, object]:
        for seq in range(1, 4):
            call.event(seq, "text_delta", {"text": f"{params.words}{seq}"})
            sleep(0)
        return {"words": params.words}

    def flood(self, params: Words, call: Call) -> Mapping[str, object]:
        for seq in range(200):
            call.event(seq, "text_delta", {"text": "x" * 65_536})
        self.ended.append("flood")
        return {}

    def refuse(self, params: Words, call: Call) -> Mapping[str, object]:
        raise UsageError(f"Not {params.words!r}.", hint="Try y.")

    def client(self) -> Client:
        self.clients.append(Client(self.path))
        return self.clients[-1]

    def close(self) -> None:
        self.gate.set()
        self.server.stop(2.0)
        self.listener.close()
        for client in self.clients:
            client.socket.close()


class Client:
    """A raw client."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(5)
        self.socket.connect(str(path))
        self.reader = FrameReader()
        self.answers: list[dict] = []

    def send(self, method: str, *, id: object = 1, v: object = VERSION, **params: object) -> None:
        self.socket.sendall(frame(method, id=id, v=v, **params))

    def answer(self) -> dict:
        """The next thing the server says."""
        while not self.answers:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError
            self.answers += [msgspec.json.decode(payload) for payload in self.reader.feed(data)]
        return self.answers.pop(0)

    def ask(self, method: str, **params: object) -> dict:
        self.send(method, **params)
        return self.answer()

    def is_hung_up(self) -> bool:
        try:
            self.answer()
        except (EOFError, ConnectionError):
            return True
        return False


def frame(method: str, *, id: object = 1, v: object = VERSION, **params: object) -> bytes:
    return encode(msgspec.json.encode({"v": v, "id": id, "method": method, "params": params}))


def code_of(answer: dict) -> str:
    return answer["error"]["code"]
