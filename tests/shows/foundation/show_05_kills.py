"""kill -9 of worker, arbiter and both: in every state from source, 200 seeded random times in the binary.

python show_05_kills.py [--kills 200] [--seed 5] [--binary dist/fermix-slim]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from fermix.errors import FermixError
from fermix.ipc.client import Result
from fermix.ipc.following import TurnWatch
from tests.bot import CHECKOUT, Bot, Model, fresh_id, wait_for
from tests.states import (
    AFTER_THE_REPLY,
    BEFORE_THE_REPLY,
    VICTIMS,
    kill_in_state,
    rows,
    words_of,
)

READY_WITHIN_S = 2.0
SESSIONS = 4
HONEST = "fermix stopped twice while working on this message"


def walk_states() -> float:
    """Every state and victim once; the longest time until ready."""
    worst = 0.0
    for state in (*BEFORE_THE_REPLY, *AFTER_THE_REPLY):
        for victim in VICTIMS:
            worst = max(worst, kill_in_state(state, victim))
            print(f"{state} · {victim}: answered once", flush=True)
    return worst


class Person(threading.Thread):
    """Says one thing after the other in a session of their own, through every crash."""

    def __init__(self, bot: Bot, session: str, stopping: threading.Event) -> None:
        super().__init__(daemon=True)
        self.bot = bot
        self.session = session
        self.stopping = stopping
        self.heard: dict[str, str] = {}
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            number = 0
            while not self.stopping.is_set():
                number += 1
                word = f"{self.session}-{number}"
                self.heard[word] = self.ask(word)
        except BaseException as error:  # a thread's boundary: the main thread raises it
            self.error = error

    def ask(self, word: str) -> str:
        message = {"text": word, "session": self.session, "client_id": fresh_id()}
        watch = TurnWatch(self.bot.connect, message, patience_s=60.0)
        while True:
            answer = watch.read(60.0)
            assert answer is not None, f"{word}: silence"
            if isinstance(answer, Result):
                self.acknowledge(watch)
                return str(answer.data["text"])

    def acknowledge(self, watch: TurnWatch) -> None:
        for _ in range(200):
            try:
                watch.acknowledge()
                return
            except FermixError:
                time.sleep(0.05)
        raise AssertionError("no acknowledgement was taken")


def kill_at_random(bot: Bot, kills: int, seed: int) -> list[float]:
    """Seconds until ready after each kill; arbiter kills are followed by a start, as a service does."""
    dice = random.Random(seed)
    ready: list[float] = []
    for number in range(1, kills + 1):
        time.sleep(dice.uniform(0.0, 0.25))
        victim = dice.choice(VICTIMS)
        worker, arbiter = bot.worker, bot.arbiter
        bot.kill(*{"worker": (worker,), "arbiter": (arbiter,), "both": (arbiter, worker)}[victim])
        if victim == "worker":
            ready.append(wait_for("the daemon to be ready again", bot.is_ready))
        else:
            ready.append(bot.start())
        if number % 20 == 0:
            print(f"{number} kills, longest until ready {max(ready):.2f} s", flush=True)
    return ready


def random_kills(binary: Path, kills: int, seed: int) -> tuple[int, float]:
    """How many messages were answered, and the longest time until ready."""
    notes = Path(tempfile.mkdtemp(prefix="fx-notes-")) / "notes"
    call = {"tool_calls": [{"name": "shell", "arguments": {"script": f"echo {{text}} >> {notes}"}}]}
    answers = [call, {"say": "Answer to {text}.", "chunks": 3, "delay_ms": 20}]
    model = Model({"rules": [{"when": "", "then": answers}]})
    bot = Bot(model, argv=(str(binary), "run"), config="[runtime]\nrestarts = 1000\n")
    stopping = threading.Event()
    people = [Person(bot, f"person{number}", stopping) for number in range(SESSIONS)]
    try:
        bot.start()
        for person in people:
            person.start()
        ready = kill_at_random(bot, kills, seed)
        stopping.set()
        for person in people:
            person.join(90)
            assert not person.is_alive(), f"{person.session} waits for ever"
            if person.error is not None:
                raise person.error
        return check(bot, people, notes), max(ready)
    finally:
        bot.close()
        model.close()


def check(bot: Bot, people: list[Person], notes: Path) -> int:
    heard = {word: text for person in people for word, text in person.heard.items()}
    for word, text in heard.items():
        is_answer = words_of(text) == f"Answer to {word}."
        assert is_answer or text.startswith(HONEST), f"{word} was answered {text!r}"
    runs = Counter(notes.read_text().split())
    assert max(runs.values()) == 1, f"ran more than once: {[word for word, n in runs.items() if n > 1]}"
    finals = "SELECT count(*) FROM messages WHERE role = 'assistant' AND turn_id = inbox.turn_id AND {}"
    is_final = "json_array_length(coalesce(json_extract(body, '$.tool_calls'), '[]')) = 0"
    answered = rows(bot, f"SELECT ({finals.format(is_final)}) FROM inbox")
    assert answered == [(1,)] * len(heard), f"answers per message: {Counter(answered)}"
    open_states = "SELECT state FROM inbox WHERE state NOT IN ('committed', 'failed')"
    wait_for("every message to be committed", lambda: not rows(bot, open_states))
    return len(heard)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    chosen = parser.parse_args()
    by_state = walk_states()
    answered, at_random = random_kills(chosen.binary.resolve(), chosen.kills, chosen.seed)
    worst = max(by_state, at_random)
    assert worst <= READY_WITHIN_S, f"ready again only after {worst:.2f} s"
    print(
        f"33 kills in exact states and {chosen.kills} at random: {answered} messages answered once, "
        f"no tool call ran twice, ready again within {worst:.2f} s (at most {READY_WITHIN_S:g})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
