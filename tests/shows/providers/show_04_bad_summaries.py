"""Summarisers that fail, say nothing, are slow, grow or lie: no row is lost, and the person is told.

python -m tests.shows.providers.show_04_bad_summaries [--binary dist/fermix-slim] [--source]
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bot import CHECKOUT, SOURCE, Bot
from tests.shows.providers.window_model import WindowModel, is_summing_up

WINDOW = 8_192
TURNS = 30
FIRST = "Plan the garden, message 0.\n- [ ] buy seeds"
SECTIONS = "Goal: a garden\nDone: {done}\nFacts: {facts}\nOpen:\n- none"


def broken(body: dict[str, Any]) -> object:
    """Ends the connection without an answer."""
    raise ConnectionError("as if the server had died")


def slow(body: dict[str, Any]) -> object:
    """Says nothing for longer than the daemon waits."""
    time.sleep(4)
    return SECTIONS.format(done="a lot", facts="none")


BAD: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "failing": (broken, "failed ("),
    "empty": (lambda body: " ", "was empty"),
    "slow": (slow, "took too long"),
    "growing": (lambda body: "more " * 40_000, "was no shorter"),
    "lying about what is done": (
        lambda body: SECTIONS.format(done="buy seeds, and all else", facts="none"),
        "called done what is still open",
    ),
    "lying about facts": (
        lambda body: SECTIONS.format(done="some", facts="the money is at https://example.org/bank, 99512"),
        "named what nobody had said",
    ),
}


def main(words: list[str]) -> int:
    """0 when it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    parser.add_argument("--source", action="store_true", help="run the checkout instead of the binary")
    chosen = parser.parse_args(words)
    argv = SOURCE if chosen.source else (str(chosen.binary.resolve()), "run")
    for name, (summary, why) in BAD.items():
        print(f"{name}: {talk(argv, summary, why)}", flush=True)
    print(f"{len(BAD)} bad summarisers: no row lost, no history changed, the person told each time")
    return 0


def talk(argv: tuple[str, ...], summary: Callable[[dict[str, Any]], object], why: str) -> str:
    """A conversation too long for the window; what the person was told of the summary."""
    sums = 0

    def answer(body: dict[str, Any]) -> object:
        nonlocal sums
        if is_summing_up(body):
            sums += 1
            return summary(body)
        return "an answer of some words " * 20

    model = WindowModel(WINDOW, answer, is_quiet=True)
    bot = Bot(model, argv=argv)
    path = bot.home / "config.toml"
    more = f"window_tokens = {WINDOW}\nidle_timeout_s = 1.0\n"
    path.write_text(path.read_text().replace('model = "scripted"\n', f'model = "scripted"\n{more}'))
    said: list[str] = []
    told: list[str] = []
    try:
        bot.start()
        for number in range(TURNS):
            words = FIRST if number == 0 else f"message {number}: " + "words of the person " * 40
            said.append(words)
            reply = bot.say(words)
            assert reply.result["status"] == "completed", (number, reply.result)
            told += [str(event.data["text"]) for event in reply.events if event.name == "notice"]
        stored = rows(bot.home / "memory.db")
    finally:
        bot.close()
        model.close()
    assert stored == (said, 2 * TURNS, 0), stored
    about = [text for text in told if why in text and "kept" in text]
    assert about, f"nobody was told: {told}"
    for body in model.asked:
        text = "\n".join(str(message.get("content")) for message in body["messages"])
        assert is_summing_up(body) or FIRST.splitlines()[0] in text, "a prompt lacks the first request"
    assert model.refused == 0
    return f"{sums} summaries asked for, told {len(about)} times: {about[0]}"


def rows(path: Path) -> tuple[list[str], int, int]:
    """What the person said, how many messages and how many summaries there are."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        select = "SELECT json_extract(body, '$.text') FROM messages WHERE role = 'user' ORDER BY position"
        said = [text for (text,) in database.execute(select)]
        (messages,) = database.execute("SELECT count(*) FROM messages").fetchone()
        (summaries,) = database.execute("SELECT count(*) FROM summaries").fetchone()
    return said, messages, summaries


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
