"""500 turns with tool results of 1 B to 4 MB in a window of 8,192 tokens: none fails, nothing is forgotten.

python -m tests.shows.providers.show_03_long_conversation [--binary FILE] [--source] [--turns 500]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from tests.bot import CHECKOUT, SOURCE, Bot
from tests.shows.providers.window_model import WindowModel, is_summing_up

WINDOW = 8_192
FIRST = "Build me a greenhouse by Sunday, turn 0.\n- [ ] order the glass\n- [ ] ask Ann for the drill"
KEPT = (FIRST, "- order the glass", "- ask Ann for the drill")
LEARNED = "water the seedlings"
PRINTED_BYTES = 1_000_000
SIZES = (1, 10, 100, 1_000, 3_000, 10_000, 100_000, 1_000_000, 4_180_000)


def main(words: list[str]) -> int:
    """0 when it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    parser.add_argument("--source", action="store_true", help="run the checkout instead of the binary")
    parser.add_argument("--turns", type=int, default=500)
    chosen = parser.parse_args(words)
    argv = SOURCE if chosen.source else (str(chosen.binary.resolve()), "run")
    print(talk(argv, chosen.turns))
    return 0


def talk(argv: tuple[str, ...], turns: int) -> str:
    """Have the conversation, then look at every request of it."""
    dice = random.Random(3)
    sizes = [dice.choice(SIZES) for _ in range(turns)]
    model = WindowModel(WINDOW, lambda body: answer(body, sizes))
    bot = Bot(model, argv=argv)
    prepare(bot)
    began = time.monotonic()
    try:
        bot.start()
        for number in range(turns):
            reply = bot.say(FIRST if number == 0 else f"go on, turn {number}")
            assert reply.result["status"] == "completed", (number, reply.result)
            assert f"finished turn {number}" in reply.text, (number, reply.text)
        took_s = time.monotonic() - began
        summaries = look_at_rows(bot.home / "memory.db", turns)
    finally:
        bot.close()
        model.close()
    changes = look_at_requests(model.asked, summaries)
    assert changes == summaries, f"{changes} prefixes changed, {summaries} compactions happened"
    return (
        f"{turns} turns, {len(model.asked)} requests, 0 failed, {model.refused} refused; largest "
        f"{model.largest} of {WINDOW} tokens; {summaries} compactions, all other prefixes byte-identical; "
        f"{took_s:.0f} s"
    )


def prepare(bot: Bot) -> None:
    """Tell the window, and lay down a file that is read in one piece of 4 MB."""
    path = bot.home / "config.toml"
    line = f"window_tokens = {WINDOW}\n"
    path.write_text(path.read_text().replace('model = "scripted"\n', f'model = "scripted"\n{line}'))
    workspace = bot.home / "workspace"
    workspace.mkdir(mode=0o700)
    (workspace / "large.txt").write_text(("x" * 2_090 + "\n") * 2_000)


def answer(body: dict[str, Any], sizes: list[int]) -> object:
    """A summary, a command that prints as much as this turn's size says, or the end of the turn."""
    if is_summing_up(body):
        return f"Goal: a greenhouse\nDone: some turns\nFacts: none\nOpen:\n- {LEARNED}"
    last = body["messages"][-1]
    number = turn_of(body["messages"])
    if last["role"] == "tool":
        return f"finished turn {number}"
    if sizes[number] > PRINTED_BYTES:  # what a command prints is cut before that
        arguments = {"path": "large.txt", "lines": 2_000}
        return {"name": "file_read", "arguments": json.dumps(arguments)}
    script = f"head -c {sizes[number]} /dev/zero | tr '\\0' x | fold -w 99"
    return {"name": "shell", "arguments": json.dumps({"script": script})}


def turn_of(messages: list[dict[str, Any]]) -> int:
    """The number in the person's latest words."""
    for message in reversed(messages):
        if message["role"] == "user" and (found := re.findall(r"turn (\d+)", str(message["content"]))):
            return int(found[-1])
    raise AssertionError("no turn is named")


def look_at_requests(asked: list[dict[str, Any]], summaries: int) -> int:
    """How often a prefix changed; every prompt must hold what may never be forgotten."""
    changes, before, learned = 0, b"", False
    for body in asked:
        if is_summing_up(body):
            learned = True
            continue
        text = "\n".join(str(message.get("content")) for message in body["messages"])
        missing = [words for words in KEPT[: 3 if learned else 1] if words not in text]
        assert not missing, f"a prompt lacks {missing}"
        assert not learned or LEARNED in text, "a prompt lacks what the summary left open"
        here = json.dumps(body.get("tools")).encode() + b"".join(
            json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in body["messages"]
        )
        changes += not here.startswith(before)
        before = here
    assert summaries > 0
    return changes


def look_at_rows(path: Path, turns: int) -> int:
    """How many summaries there are; every message must still be there."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        (messages,) = database.execute("SELECT count(*) FROM messages").fetchone()
        (summaries,) = database.execute("SELECT count(*) FROM summaries").fetchone()
    assert messages == 4 * turns, f"{messages} messages are stored, {4 * turns} were said"
    return int(summaries)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
