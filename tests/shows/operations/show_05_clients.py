"""OpenAI's own client chats through /v1; a page of another origin, or behind a rebound name, gets nothing.

python show_05_clients.py [--binary dist/fermix-slim] [--source]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.bot import CHECKOUT, SOURCE, Bot, Model
from tests.shows.environment import environment
from tests.shows.operations import browser

OPENAI = ("openai==3.57.0",)
CLIENT = Path(__file__).with_name("openai_chat.py")
SCRIPT = {
    "rules": [
        {"when": "break", "then": [{"status": 401, "error": {"message": "no such key"}}]},
        {"when": "", "then": [{"say": "You said: {text}", "chunks": 6, "delay_ms": 20}]},
    ]
}


def chat(bot: Bot) -> list[str]:
    """What of OpenAI's client works, a line each. Raises: CalledProcessError at the first that does not."""
    python = environment("openai", OPENAI) / "bin/python"
    done = subprocess.run(
        [python, CLIENT, f"http://{bot.address}/v1"],
        env={"PATH": os.environ["PATH"], "OPENAI_API_KEY": bot.token},
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    parser.add_argument("--source", action="store_true", help="the daemon from source instead")
    chosen = parser.parse_args()
    model = Model(SCRIPT)
    bot = Bot(model, argv=SOURCE if chosen.source else (str(chosen.binary.resolve()), "run"), full=True)
    try:
        bot.start()
        works = chat(bot)
        print("\n".join(f"openai: {line}" for line in works))
        foreign, rebound = browser.attack(bot)
    finally:
        bot.close()
        model.close()
    print(
        f"OpenAI's client: {len(works)} things work; a browser: {foreign} tries of a page of another "
        f"origin and {rebound} behind a rebound name, nothing read, nothing caused"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
