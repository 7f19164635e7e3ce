"""Streams cut at random bytes and gone on with, also across killed workers: what is read is what was said.

python show_06_resumed_streams.py [--rounds 60] [--seed 6] [--binary dist/fermix-slim] [--source]
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bot import CHECKOUT, SOURCE, Bot, Model, fresh_id, wait_for

WATCHERS = 3
"""Clients that read each message's stream, each cut at points of its own."""
WORDS = 150
SIGNS = ("wört", "line\n", "…", "data:", ":", "x" * 40)
PATIENCE_S = 60.0


def script(seed: int, rounds: int) -> dict[str, object]:
    """A long answer for every round; every third one uses a tool first."""
    dice = random.Random(seed)
    rules = []
    for number in range(rounds):
        text = " ".join(f"{dice.choice(SIGNS)}{word}" for word in range(WORDS))
        answer: dict[str, object] = {"say": text, "chunks": WORDS, "delay_ms": 4}
        steps: list[dict[str, object]] = [answer]
        if number % 3 == 0:
            call = {"name": "shell", "arguments": {"script": "sleep 0.1; echo worked"}}
            steps.insert(0, {"tool_calls": [call]})
        rules.append({"when": f"round {number};", "then": steps})
    return {"rules": rules}


@dataclass
class Watcher(threading.Thread):
    """Reads one message's stream to its end, however often it is cut."""

    bot: Bot
    body: dict[str, object]
    dice: random.Random
    counts: Counter[str]
    shown: str = ""
    last_id: str | None = None
    done: dict[str, Any] | None = None
    error: BaseException | None = None
    ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        try:
            until_s = time.monotonic() + PATIENCE_S
            while self.done is None:
                assert time.monotonic() < until_s, f"no end within {PATIENCE_S:g} s"
                try:
                    self.read_some()
                except (OSError, http.client.HTTPException):
                    self.counts["lost connections"] += 1
                    time.sleep(0.02)
        except BaseException as error:  # a thread's boundary: the main thread raises it
            self.error = error

    def read_some(self) -> None:
        """Connect, read up to a random byte or the end, forget what was only half there."""
        link = http.client.HTTPConnection(self.bot.address, timeout=10)
        headers = {
            "Authorization": f"Bearer {self.bot.token}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        if self.last_id is not None:
            headers["Last-Event-ID"] = self.last_id
        try:
            link.request("POST", "/message", json.dumps(self.body), headers)
            answer = link.getresponse()
            if answer.status != 200:
                self.counts[f"answers with {answer.status}"] += 1
                time.sleep(0.05)
                return
            self.take(
                answer, left=self.dice.randrange(1, 4_000) if self.dice.random() < 0.85 else 10_000_000
            )
        finally:
            link.close()

    def take(self, answer: http.client.HTTPResponse, *, left: int) -> None:
        raw = b""
        while left > 0:
            data = answer.read1(min(left, 4096))
            if not data:
                return
            left -= len(data)
            raw += data
            *blocks, raw = raw.split(b"\n\n")
            for block in blocks:
                self.show(block.decode())
        self.counts["cuts"] += 1

    def show(self, block: str) -> None:
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        fields = dict(line.partition(": ")[::2] for line in lines)
        if not fields:
            return
        data = json.loads(fields["data"])
        if "id" in fields:
            if fields["event"] != "accepted":
                self.ids.append(int(fields["id"]))
            self.last_id = fields["id"]
        if fields["event"] == "restarted":
            self.counts["restarts read"] += 1
            self.shown = ""
        elif fields["event"] == "text_delta":
            self.shown += data["text"]
        elif fields["event"] == "correction":
            self.shown += "\n\n" + data["text"]
        elif fields["event"] == "done":
            self.done = data


def play(bot: Bot, number: int, dice: random.Random, counts: Counter[str]) -> None:
    """One message with all its watchers; in every second round the worker is killed in the middle."""
    session = f"s{number}"
    body = {"text": f"round {number}; go", "session": session, "client_id": fresh_id()}
    watchers = [Watcher(bot, body, random.Random(dice.random()), counts) for _ in range(WATCHERS)]
    for watcher in watchers:
        watcher.start()
    if number % 2 == 0:
        time.sleep(dice.uniform(0.0, 0.9))
        bot.kill(bot.worker)
        counts["kills"] += 1
        wait_for("the daemon to be back", bot.is_ready)
    for watcher in watchers:
        watcher.join(PATIENCE_S + 10)
        if watcher.error is not None:
            raise watcher.error
    check(bot, session, watchers)


def check(bot: Bot, session: str, watchers: list[Watcher]) -> None:
    """Every watcher ends with the very text that is stored as delivered, once."""
    with bot.connect() as connection:
        stored = connection.call("sessions.messages", {"session": session, "limit": 50}, 10.0)["messages"]
    said = [each["text"] for each in stored if each["role"] == "assistant"]
    assert len(said) == 1, f"{session}: {len(said)} answers"
    for watcher in watchers:
        assert watcher.done is not None
        assert watcher.done["status"] == "completed", watcher.done
        assert watcher.done["text"] == said[0]
        assert watcher.shown == said[0], (
            f"{session}: read {watcher.shown[-200:]!r}, said {said[0][-200:]!r}"
        )
        assert watcher.ids == sorted(set(watcher.ids)), f"{session}: an event came twice or out of order"


def main() -> int:
    """Play every round; raises AssertionError where the promise does not hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    parser.add_argument("--source", action="store_true", help="run the daemon from source")
    chosen = parser.parse_args()
    socket.setdefaulttimeout(30)
    dice = random.Random(chosen.seed)
    counts: Counter[str] = Counter()
    model = Model(script(chosen.seed, chosen.rounds))
    argv = SOURCE if chosen.source else (str(chosen.binary), "run")
    # Kills are what this is about; pauses between workers would only make it longer.
    bot = Bot(model, argv=argv, full=True, config="[runtime]\nrestarts = 100000\n")
    try:
        bot.start()
        for number in range(chosen.rounds):
            play(bot, number, dice, counts)
            print(f"round {number}: {dict(counts)}", flush=True)
    finally:
        bot.close()
        model.close()
    streams = chosen.rounds * WATCHERS
    print(
        f"{streams} streams cut {counts['cuts']} times and through {counts['kills']} killed workers "
        f"({counts['restarts read']} restarts read): each ended with exactly the delivered text"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
