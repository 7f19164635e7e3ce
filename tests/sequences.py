"""Random lives of one daemon: messages, kills, stops, cancels; and what must hold once all is quiet."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fermix.errors import FermixError
from fermix.ipc.client import open_connection
from tests.bot import Bot, Model, fresh_id, is_alive, wait_for
from tests.states import AFTER_THE_REPLY, BEFORE_THE_REPLY, rows, words_of

STATES = (*BEFORE_THE_REPLY, *AFTER_THE_REPLY)
STEPS = 14
SESSIONS = 3
HONEST = "fermix stopped twice while working on this message"
TOLD = """
    SELECT platform_id,
        (SELECT count(*) FROM messages WHERE turn_id = inbox.turn_id AND role = 'user'),
        (SELECT count(*) FROM messages WHERE turn_id = inbox.turn_id AND role = 'assistant'
            AND json_array_length(coalesce(json_extract(body, '$.tool_calls'), '[]')) = 0)
    FROM inbox
"""
CONFIG = "[runtime]\ndrain_s = 0.3\nrestarts = 1000\n"


@dataclass
class Sent:
    """A message somebody sent; whether it was taken only the daemon knows."""

    text: str
    session: str
    turn_id: str | None = None


class Life:
    """One home, one model, and everything that is done to them under one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.folder = Path(tempfile.mkdtemp(prefix="fx-notes-"))
        self.notes = self.folder / "notes"
        self.model = Model(script(self.notes))
        self.bot = Bot(self.model, config=CONFIG)
        self.sent: dict[str, Sent] = {}
        self.done: list[str] = []
        """What happened, for whoever must understand a failure."""

    def close(self) -> None:
        self.bot.close()
        self.model.close()
        shutil.rmtree(self.folder)

    def play(self) -> None:
        """Do random things, then bring the daemon back for good and ask for every answer."""
        acts: list[Callable[[], None]] = [self.send, self.send, self.send, self.stop_all, self.cancel]
        acts += [self.resume, self.kill_worker, self.kill_arbiter, self.kill_both, self.drain, self.wait]
        self.start()
        for _ in range(STEPS):
            act = self.dice.choice(acts)
            self.done.append(act.__name__)
            try:
                act()
            except (FermixError, OSError) as refused:
                self.done.append(f"refused: {refused}")
            self.wait()
            if not self.processes():
                self.start()
        self.kill_both()
        self.bot.start()

    def start(self) -> None:
        """Start the daemon; now and then it freezes in some state of its life."""
        words: tuple[str, ...] = ()
        if self.dice.random() < 0.3:
            marks = self.folder / f"marks {len(self.done)}"
            marks.mkdir()
            words = ("--stop-at", self.dice.choice(STATES), "--marks", str(marks))
        self.done.append(f"start {words[1:2]}")
        self.bot.start(*words, wait=False)
        wait_for("the daemon to be ready or frozen", lambda: self.bot.is_ready() or self.is_frozen())

    def is_frozen(self) -> bool:
        try:
            stat = Path(f"/proc/{self.bot.worker}/stat").read_text()
        except (OSError, StopIteration):
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def processes(self) -> list[int]:
        """Arbiter and worker, as far as they live."""
        try:
            arbiter = self.bot.arbiter
        except (OSError, ValueError):
            return []
        if not is_alive(arbiter):
            return []
        try:
            return [arbiter, self.bot.worker]
        except (OSError, StopIteration):
            return [arbiter]

    def send(self, text: str | None = None) -> None:
        number = len(self.sent)
        word = text or f"{'long' if self.dice.random() < 0.2 else 'w'}{number}"
        client_id, sent = fresh_id(), Sent(word, f"s{self.dice.randrange(SESSIONS)}")
        self.sent[client_id] = sent
        with open_connection(self.bot.home / "daemon.sock", timeout_s=1.0) as connection:
            params = {"text": word, "client_id": client_id, "session": sent.session}
            accepted = connection.stream("message", params, 2.0).read(1.0)
            sent.turn_id = accepted.data["turn_id"] if accepted else None

    def stop_all(self) -> None:
        self.send("/stop all")

    def some_turn(self) -> str:
        known = [sent.turn_id for sent in self.sent.values() if sent.turn_id]
        return self.dice.choice(known) if known else fresh_id()

    def cancel(self) -> None:
        with open_connection(self.bot.home / "daemon.sock", timeout_s=1.0) as connection:
            connection.call("cancel", {"turn_id": self.some_turn()}, 1.0)

    def resume(self) -> None:
        with open_connection(self.bot.home / "daemon.sock", timeout_s=1.0) as connection:
            connection.stream("resume", {"turn_id": self.some_turn()}, 1.0).read(0.2)

    def wait(self) -> None:
        time.sleep(self.dice.random() * 0.2)

    def kill_worker(self) -> None:
        self.bot.kill(*self.processes()[1:])

    def kill_arbiter(self) -> None:
        self.bot.kill(*self.processes()[:1])

    def kill_both(self) -> None:
        self.bot.kill(*self.processes())

    def drain(self) -> None:
        """Ask it to stop; it is killed while it drains, or ends by itself."""
        running = self.processes()
        for arbiter in running[:1]:
            os.kill(arbiter, signal.SIGTERM)
        self.wait()
        if self.dice.random() < 0.4:
            self.bot.kill(*running)
        wait_for("the daemon to end", lambda: not any(map(is_alive, running)))

    def check(self) -> None:
        """Every message has one honest end, nothing ran twice, every history is one a model takes."""
        bot = self.bot
        for client_id, sent in self.sent.items():
            reply = bot.say(sent.text, session=sent.session, client_id=client_id)
            if reply.result["status"] == "completed":
                is_answer = words_of(reply.text) == f"Answer to {sent.text}."
                assert sent.text.startswith("/") or is_answer, reply.text
            else:
                assert reply.text.startswith(("Stopped", HONEST)), reply.text
        settled = [("committed",)]
        wait_for("all to be committed", lambda: rows(bot, "SELECT DISTINCT state FROM inbox") == settled)
        assert Counter(id for (id,) in rows(bot, "SELECT platform_id FROM inbox")) == Counter(
            list(self.sent)
        )
        assert rows(bot, "SELECT DISTINCT state FROM outbox") == [("sent",)]
        runs = Counter(self.notes.read_text().split()) if self.notes.exists() else Counter()
        assert not runs or max(runs.values()) == 1, f"ran more than once: {runs}"
        check_histories(bot)
        for client_id, questions, answers in rows(bot, TOLD):
            is_command = self.sent[str(client_id)].text.startswith("/")
            assert (questions, answers) in ([(0, 0)] if is_command else [(1, 1), (0, 0), (0, 1)])


def script(notes: Path) -> dict[str, object]:
    """A model whose every message runs a tool that notes it; `long` ones then take 4 seconds."""

    def calls(pause: str) -> dict[str, object]:
        note = {"name": "note_run", "arguments": {"path": str(notes), "word": "{text}"}}
        return {"tool_calls": [note, {"name": "shell", "arguments": {"script": f"sleep {pause}"}}]}

    answer = {"say": "Answer to {text}.", "chunks": 3, "delay_ms": 10}
    return {
        "rules": [
            {"when": "long", "then": [calls("4"), answer]},
            {"when": "", "then": [calls("0.02"), answer]},
        ]
    }


def check_histories(bot: Bot) -> None:
    """In every conversation each call has exactly one result, directly behind it."""
    for (conversation,) in rows(bot, "SELECT id FROM conversations"):
        query = (
            f"SELECT role, body FROM messages WHERE conversation_id = '{conversation}' ORDER BY position"
        )
        waiting: list[str] = []
        for role, body in rows(bot, query):
            message = msgspec.json.decode(str(body))
            if role == "tool":
                assert message["call_id"] in waiting, f"a result nobody asked for: {message}"
                waiting.remove(message["call_id"])
            else:
                assert not waiting, f"calls without a result: {waiting}"
                waiting = [call["id"] for call in message.get("tool_calls", [])]
        assert not waiting, f"calls without a result: {waiting}"


def live(seed: int) -> int:
    """How many messages a random life had; AssertionError when a promise was broken."""
    life = Life(seed)
    try:
        life.play()
        life.check()
        return len(life.sent)
    except AssertionError as broken:
        broken.add_note(f"seed {seed}: {', '.join(life.done)}")
        raise
    finally:
        life.close()
