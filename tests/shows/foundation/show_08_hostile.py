"""10,000 hostile requests on the socket: clear refusals, flat memory, and a good client served throughout.

python show_08_hostile.py [--requests 10000] [--binary dist/fermix-slim]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.bot import CHECKOUT, Bot, Model

MEMORY_MB = 10.0
SERVED_WITHIN_S = 1.0
SILENT_CLIENTS = 300
DEEP = b'{"v":1,"id":1,"method":"status","params":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001


def framed(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


HOSTILE = {
    "a length over the limit": struct.pack(">I", 5 * 1024 * 1024) + b"x" * 65_536,
    "a length of zero": struct.pack(">I", 0),
    "the largest length": b"\xff\xff\xff\xff",
    "text instead of a frame": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "depth 10,000": framed(DEEP),
    "invalid UTF-8": framed(b'{"v":1,"id":1,"method":"\xff\xfe","params":{}}'),
    "no JSON": framed(b"hello"),
    "a list": framed(b"[]"),
    "a wrong version": framed(b'{"v":99,"id":1,"method":"status","params":{}}'),
    "an unknown method": framed(b'{"v":1,"id":1,"method":"no.such","params":{}}'),
    "wrong params": framed(b'{"v":1,"id":1,"method":"message","params":{"text":[]}}'),
    "a huge number": framed(b'{"v":' + b"9" * 5000 + b',"id":1,"method":"status"}'),
    "many keys": framed(
        json.dumps({"v": 1, "id": 1, "method": "x", **{f"k{n}": n for n in range(50_000)}}).encode()
    ),
}


def attack(bot: Bot, frame: bytes) -> str:
    """The refusal's code; `closed` when the daemon only hung up."""
    with connected(bot) as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(frame)
        try:
            head = client.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return "closed"
            answer = client.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL)
        except ConnectionResetError:
            return "closed"
    return str(json.loads(answer)["error"]["code"])


@contextlib.contextmanager
def connected(bot: Bot):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(30.0)
    client.connect(str(bot.home / "daemon.sock"))
    try:
        yield client
    finally:
        client.close()


class GoodClient(threading.Thread):
    """Asks for the status all the time and notes how long that took."""

    def __init__(self, bot: Bot) -> None:
        super().__init__(daemon=True)
        self.bot = bot
        self.ending = threading.Event()
        self.longest_s = 0.0
        self.served = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ending.wait(0.05):
                began = time.monotonic()
                assert self.bot.status()["state"] == "ready"
                self.longest_s = max(self.longest_s, time.monotonic() - began)
                self.served += 1
        except BaseException as error:  # a thread's boundary: the main thread raises it
            self.error = error


def hold_silence(bot: Bot) -> list[socket.socket]:
    """Clients that send half a request, or nothing, and stay."""
    silent = []
    for number in range(SILENT_CLIENTS):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(str(bot.home / "daemon.sock"))
        if number % 2:
            client.sendall(struct.pack(">I", 1000) + b'{"v":1,')
        silent.append(client)
    return silent


def run(bot: Bot, requests: int) -> tuple[Counter[str], float, GoodClient]:
    process = psutil.Process(bot.worker)
    for frame in HOSTILE.values():
        attack(bot, frame)
    before = process.memory_info().rss
    good = GoodClient(bot)
    good.start()
    silent = hold_silence(bot)
    answers: Counter[str] = Counter()
    frames = list(HOSTILE.items())
    for number in range(requests):
        name, frame = frames[number % len(frames)]
        code = attack(bot, frame)
        answers[f"{name}: {code}"] += 1
    for client in silent:
        client.close()
    good.ending.set()
    good.join(30.0)
    time.sleep(1.0)
    grown_mb = (process.memory_info().rss - before) / 1e6
    assert bot.worker == process.pid, "the worker was replaced"
    return answers, grown_mb, good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    chosen = parser.parse_args()
    model = Model({"rules": [{"when": "", "then": [{"say": "fine"}]}]})
    bot = Bot(model, argv=(str(chosen.binary.resolve()), "run"))
    try:
        bot.start()
        answers, grown_mb, good = run(bot, chosen.requests)
        if good.error is not None:
            raise good.error
        assert bot.say("still there?").text == "fine"
    finally:
        bot.close()
        model.close()
    for line, count in sorted(answers.items()):
        print(f"{count:>6}  {line}")
    silent = [line for line in answers if line.endswith("closed")]
    assert not silent, f"refused without a word: {silent}"
    assert abs(grown_mb) <= MEMORY_MB, f"memory changed by {grown_mb:.1f} MB"
    assert good.longest_s <= SERVED_WITHIN_S, f"a good client waited {good.longest_s:.2f} s"
    print(
        f"{sum(answers.values())} hostile requests beside {SILENT_CLIENTS} silent clients: "
        f"memory {grown_mb:+.1f} MB (within {MEMORY_MB:g}), "
        f"{good.served} good requests, the slowest {good.longest_s * 1000:.0f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
