"""One message, one kill in an exact state, one restart: what must hold afterwards."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

from tests.bot import Bot, Model, Reply, collect, fresh_id, wait_for

BEFORE_THE_REPLY = (
    "inbox.received",
    "inbox.running",
    "step.model_reply",
    "tool.started",
    "tool.ended",
    "step.tool_result",
    "step.final",
    "outbox.sending",
)
"""Events in the order one turn emits them, up to the reply's delivery."""
AFTER_THE_REPLY = ("outbox.sent", "inbox.delivered", "inbox.committed")
"""Emitted once the client has acknowledged."""
VICTIMS = ("worker", "arbiter", "both")
INTERRUPTED_STATES = ("step.model_reply", "tool.started", "tool.ended")
"""Killed here, the tool's outcome is unknown: it may have run once, and never runs again."""


def script(notes: Path) -> dict[str, object]:
    """A model that asks for one tool call per message, then answers with the message's own words."""
    call = {"tool_calls": [{"name": "note_run", "arguments": {"path": str(notes), "word": "{text}"}}]}
    return {"rules": [{"when": "", "then": [call, {"say": "Answer to {text}."}]}]}


def kill_in_state(state: str, victim: str) -> float:
    """Seconds until the daemon was ready again; raises AssertionError when a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix="fx-notes-"))
    marks, notes = folder / "marks", folder / "notes"
    marks.mkdir()
    model = Model(script(notes))
    bot = Bot(model)
    try:
        bot.start("--stop-at", state, "--marks", str(marks))
        return _kill_once(bot, state, victim, marks=marks, notes=notes)
    finally:
        bot.close()
        model.close()
        shutil.rmtree(folder)


def _kill_once(bot: Bot, state: str, victim: str, *, marks: Path, notes: Path) -> float:
    client_id = fresh_id()
    with bot.connect() as connection:
        stream = connection.stream("message", {"text": "m1", "client_id": client_id}, 30.0)
        if state in AFTER_THE_REPLY:
            turn_id = collect(stream).result["turn_id"]
            connection.stream("ack", {"turn_id": turn_id}, 10.0)
        wait_for(f"the daemon to stop at {state}", lambda: any(marks.iterdir()))
        ready_s = _kill(bot, victim, "--stop-at", state, "--marks", str(marks))
    reply = bot.say("m1", client_id=client_id)
    _check(bot, state, reply, notes)
    return ready_s


def _kill(bot: Bot, victim: str, *words: str) -> float:
    """Kill, bring back what does not come back by itself; seconds until ready."""
    worker, arbiter = bot.worker, bot.arbiter
    chosen = {"worker": (worker,), "arbiter": (arbiter,), "both": (arbiter, worker)}[victim]
    bot.kill(*chosen)
    if victim == "worker":
        return wait_for("the daemon to be ready again", bot.is_ready)
    return bot.start(*words)


def _check(bot: Bot, state: str, reply: Reply, notes: Path) -> None:
    assert words_of(reply.text) == "Answer to m1.", f"{state}: answered {reply.text!r}"
    assert reply.result["status"] == "completed", f"{state}: {reply.result}"
    runs = notes.read_text().split() if notes.exists() else []
    expected = ([], ["m1"]) if state in INTERRUPTED_STATES else (["m1"],)
    assert runs in expected, f"{state}: the tool ran {len(runs)} times"
    wait_for(
        "the message to be committed", lambda: rows(bot, "SELECT state FROM inbox") == [("committed",)]
    )
    said = rows(
        bot, "SELECT json_extract(body, '$.text') FROM messages WHERE role = 'assistant' ORDER BY position"
    )
    assert [words_of(str(text)) for (text,) in said].count("Answer to m1.") == 1, f"{state}: said {said}"
    asked = rows(bot, "SELECT count(*) FROM messages WHERE role = 'user'")
    assert asked == [(1,)], f"{state}: the message is stored {asked[0][0]} times"
    sent = rows(bot, "SELECT state FROM outbox")
    assert sent == [("sent",)], f"{state}: outbox {sent}"


def words_of(text: str) -> str:
    """The model's words; a call that was interrupted, and nothing else, may be told beneath them."""
    words, _, correction = text.partition("\n\n**Correction** by fermix, from its own record:\n")
    assert not correction or ("Interrupted: fermix stopped" in correction and "\n" not in correction), text
    return words


def rows(bot: Bot, query: str) -> list[tuple[object, ...]]:
    """What the home's database says, read beside the daemon."""
    connection = sqlite3.connect(f"file:{bot.home}/memory.db?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
