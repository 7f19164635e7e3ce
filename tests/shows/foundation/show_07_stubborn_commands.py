"""A command that double-forks with setsid, ignores SIGTERM and floods: 5 s after its end nothing is left.

python show_07_stubborn_commands.py [--binary dist/fermix-slim]
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fermix.errors import FermixError
from tests.bot import CHECKOUT, SOURCE, Bot, Model, wait_for
from tests.process.survivors import await_none, await_some

NASTY = CHECKOUT / "tests/process/nasty.py"
PROCESSES = {"stubborn": 4, "flooding": 1, "walking": 2, "wide": 41}
"""How many of a kind must be seen before it is ended: the flood may be over before one can count."""
GONE_WITHIN_S = 5.0


class Stage:
    """A daemon whose scripted model has one nasty command run for every message."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.model = Model()
        self.bot = Bot(self.model, argv=argv)
        self.bot.start()
        self.worst_s = 0.0

    def close(self) -> None:
        self.bot.close()
        self.model.close()

    def play(self, name: str, kind: str, *, end: Callable[[Bot], None], timeout_s: int = 300) -> None:
        """Have the command run, end it, and measure how long anything of it is left."""
        mark = f"show-{secrets.token_hex(8)}"
        script = f"exec {sys.executable} -S -E {NASTY} {kind} {mark}"
        call = {"tool_calls": [{"name": "shell", "arguments": {"script": script, "timeout_s": timeout_s}}]}
        self.model.script({"rules": [{"when": mark, "then": [call, {"say": "It is over."}]}]})
        person = threading.Thread(target=self._say, args=(mark,))
        person.start()
        # the daemon itself is never among them: the mark stands in the command's own line only
        await_some(mark, PROCESSES[kind])
        end(self.bot)
        took_s = await_none(mark, GONE_WITHIN_S)
        self.worst_s = max(self.worst_s, took_s)
        print(f"{kind}, {name}: gone after {took_s:.2f} s", flush=True)
        person.join(30)
        wait_for("the daemon to be ready", self._is_ready)

    def _say(self, mark: str) -> None:
        with suppress(FermixError, OSError):  # its daemon was killed: what becomes of it is show 5
            self.bot.say(mark)

    def _is_ready(self) -> bool:
        if any(process.poll() is None for process in self.bot._processes):
            return self.bot.is_ready()
        self.bot.start()
        return True


def stop(bot: Bot) -> None:
    """What `/stop` and Ctrl-C do."""
    with bot.connect() as connection:
        assert connection.call("cancel", {"session": "main"}, 10.0)["cancelled"] == 1
    time.sleep(2.0)  # the grace time after SIGTERM is the command's right


def wait_for_timeout(bot: Bot) -> None:
    """The tool call's own limit of one second, and the grace time."""
    time.sleep(3.0)


def terminate(bot: Bot) -> None:
    """A daemon that is asked to end drains for the second its settings give it."""
    os.kill(bot.arbiter, signal.SIGTERM)
    time.sleep(3.0)


def everything(bot: Bot) -> None:
    """Arbiter, worker and every monitor at one moment; the next start sweeps."""
    worker, arbiter = bot.worker, bot.arbiter
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    monitors = [int(pid) for pid in children if "monitor" in Path(f"/proc/{pid}/comm").read_text()]
    os.kill(worker, signal.SIGSTOP)  # or it would end their families itself in time
    bot.kill(arbiter, *monitors, worker)
    bot.start()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", help="a frozen fermix instead of the source")
    named = parser.parse_args().binary
    stage = Stage((str(Path(named).resolve()), "run") if named else SOURCE)
    try:
        stage.play("timeout", "stubborn", end=wait_for_timeout, timeout_s=1)
        stage.play("output cap", "flooding", end=lambda bot: time.sleep(3.0))
        stage.play("/stop", "stubborn", end=stop)
        for kind in ("stubborn", "walking", "wide"):
            stage.play("kill -9 of the worker", kind, end=lambda bot: bot.kill(bot.worker))
            stage.play("kill -9 of the arbiter", kind, end=lambda bot: bot.kill(bot.arbiter))
            stage.play("kill -9 of both", kind, end=lambda bot: bot.kill(bot.arbiter, bot.worker))
        stage.play("kill -9 of worker, arbiter and monitors", "wide", end=everything)
        stage.play("SIGTERM to the daemon", "stubborn", end=terminate)
    finally:
        stage.close()
    print(f"no process left, the slowest after {stage.worst_s:.2f} s (at most {GONE_WITHIN_S:g} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
