"""Show 3: every setting has its test, and reloads during 50 streaming turns cut none.

python show_03_reload.py [--turns 50] [--binary dist/fermix-slim]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.bot import CHECKOUT, SOURCE, Bot, Model, collect, fresh_id, wait_for
from tests.test_settings import named

WORDS = " ".join(f"word{number}" for number in range(80))
SLOW = {"rules": [{"when": "", "then": [{"say": f"{{text}}: {WORDS}", "chunks": 80, "delay_ms": 80}]}]}
QUICK = {"rules": [{"when": "", "then": [{"say": "the new one: {text}"}]}]}
CHANGES: tuple[dict[str, dict[str, object]], ...] = (
    {"agent": {"instructions": "Be brief."}},
    {"agent": {"steps_per_turn": 1, "history_messages": 2}, "gateway": {"running_turns": 1}},
    {"gateway": {"running_turns": 200, "turn_timeout_s": 1}},
    {"providers.scripted": {"idle_timeout_s": 1, "timeout_s": 1}},
    {"providers.scripted": {"takes_tools": False}, "commands": {"open_files": 64}},
    {"providers.scripted": {"model": "another"}, "logs": {"level": "debug"}},
    {"control": {"connections": 4}, "http": {"connections": 4}, "runtime": {"drain_s": 0.0}},
)
"""What would cut a turn if it counted for those that run."""


class Turn(threading.Thread):
    """One person who reads an answer while it is streamed."""

    def __init__(self, bot: Bot, number: int) -> None:
        super().__init__(daemon=True)
        self.bot = bot
        self.text = f"question {number}"
        self.begun = threading.Event()
        self.said = ""
        self.result: dict[str, object] = {}

    def run(self) -> None:
        params = {"text": self.text, "session": self.text, "client_id": fresh_id()}
        with self.bot.connect() as connection:
            reply = collect(self._noted(connection.stream("message", params, 60.0)))
        self.result = reply.result

    def _noted(self, stream):
        for answer in stream:
            if getattr(answer, "name", "") == "text_delta":
                self.said += answer.data["text"]
                self.begun.set()
            yield answer

    def check(self) -> None:
        whole = f"{self.text}: {WORDS}"
        assert self.result.get("status") == "completed", (self.text, self.result)
        assert self.result["text"] == self.said == whole, (self.text, self.said)


def write(bot: Bot, model: Model, change: dict[str, dict[str, object]]) -> None:
    """The whole of config.toml, replaced at once as an editor does."""
    told: dict[str, dict[str, object]] = {
        "provider": {"name": "scripted"},
        "providers.scripted": {"base_url": model.base_url, "model": "scripted"},
        "http": {"port": 0},
    }
    for table, values in change.items():
        told[table] = {**told.get(table, {}), **values}
    lines = [f"[{table}]\n{_values(values)}" for table, values in told.items()]
    fresh = bot.home / "config.new"
    fresh.write_text("\n".join(lines))
    fresh.chmod(0o600)
    fresh.replace(bot.home / "config.toml")


def _values(values: dict[str, object]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def reload_during(turns: int, argv: tuple[str, ...]) -> int:
    """How many reloads there were while all of `turns` were streamed and none was cut."""
    old, new = Model(SLOW), Model(QUICK)
    bot = Bot(old, argv=argv, full=True)
    try:
        bot.start()
        worker = bot.worker
        people = [Turn(bot, number) for number in range(turns)]
        for person in people:
            person.start()
        for person in people:
            assert person.begun.wait(30), f"{person.text} has not begun"
        by_hand = 0
        with bot.connect() as connection:
            for round_ in range(2):
                for change in CHANGES:
                    write(bot, (old, new)[round_], change)
                    outcome = connection.call("reload", {}, 20.0)
                    assert outcome["applied"] and not outcome["needs_restart"], outcome
                    by_hand += 1
        running = sum(person.is_alive() for person in people)
        assert running == turns, f"only {running} of {turns} turns ran all through the reloads"
        write(bot, new, {"agent": {"instructions": "By signal."}})
        os.kill(bot.arbiter, signal.SIGHUP)
        wait_for("the signal's reload", lambda: "agent.instructions" in _last_reload(bot))
        next_one = bot.say("hello", session="next")
        for person in people:
            person.join(60)
            person.check()
        assert next_one.text == "the new one: hello", next_one.text
        assert bot.worker == worker, "the worker was replaced"
        assert len(old.requests()) == turns and len(new.requests()) == 1
        assert "is stopped under" not in bot.log_text()
        return by_hand + 1
    finally:
        bot.close()
        old.close()
        new.close()


def _last_reload(bot: Bot) -> str:
    lines = [line for line in bot.log_text().splitlines() if "Settings applied" in line]
    return lines[-1] if lines else ""


def settings_proved() -> int:
    """How many settings have a test that passes now; 0 when one has not."""
    tests = sorted({"tests/test_settings.py", *named().values()})
    command = [sys.executable, "-m", "pytest", "-q", *tests]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, timeout=900)
    return len(named()) if done.returncode == 0 else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    chosen = parser.parse_args()
    argv = (str(chosen.binary.resolve()), "run") if chosen.binary.is_file() else SOURCE
    print(f"{chosen.turns} turns with {' '.join(argv)}", flush=True)
    reloads = reload_during(chosen.turns, argv)
    settings = settings_proved()
    if not settings:
        print("not every setting is proved; see above")
        return 1
    print(
        f"{reloads} reloads during {chosen.turns} streaming turns cut none; "
        f"each of {settings} settings changes what its test looks at"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
