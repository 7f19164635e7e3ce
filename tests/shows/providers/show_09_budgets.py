"""Show 9: a budget of money, tokens, steps or time is reached: no request leaves, what is left is told.

python -m tests.shows.providers.show_09_budgets [--source] [--binary dist/fermix-slim]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.bot import CHECKOUT, SOURCE, Bot, Model, Reply

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100}
PLAN = {"name": "plan", "arguments": {"steps": ["look around", "write it down"], "done": 1}}


def called(script: str) -> dict[str, object]:
    """The plan and a command, asked for again and again."""
    calls = [PLAN, {"name": "shell", "arguments": {"script": script, "timeout_s": 600}}]
    return {"rules": [{"when": "", "then": [{"tool_calls": calls, "usage": USAGE}]}]}


QUICK, SLOW = called("date +%N"), called("sleep 60")
CASES: tuple[tuple[str, dict[str, dict[str, object]], dict[str, object], int, str], ...] = (
    ("steps", {"agent": {"steps_per_turn": 2}}, QUICK, 2, "steps_used_up"),
    ("tokens of a turn", {"budget": {"turn_tokens": 3500}}, QUICK, 3, "budget_used_up"),
    ("money of a turn", {"budget": {"turn_usd": 0.01}}, QUICK, 4, "budget_used_up"),
    ("tokens of a day", {"budget": {"conversation_day_tokens": 3500}}, QUICK, 3, "budget_used_up"),
    ("money of a day", {"budget": {"conversation_day_usd": 0.01}}, QUICK, 4, "budget_used_up"),
    ("tokens of a provider", {"budget": {"provider_day_tokens": 2000}}, QUICK, 2, "budget_used_up"),
    ("money of a provider", {"budget": {"provider_day_usd": 0.004}}, QUICK, 2, "budget_used_up"),
    ("time", {"gateway": {"turn_timeout_s": 2}}, SLOW, 1, "time_used_up"),
)
"""What is limited, the settings, what the model does, at most how many requests, why it ended."""


def run(
    argv: tuple[str, ...], limit: dict[str, dict[str, object]], script: object
) -> tuple[Reply, int, int]:
    """The capped turn, how many requests it made, and how many the next message made."""
    model = Model(script)
    told = "".join(f"[{table}]\n{_values(values)}" for table, values in limit.items())
    bot = Bot(model, argv=argv, config=told)
    try:
        config = bot.home / "config.toml"
        words = config.read_text().replace('model = "scripted"', 'vendor = "openai"\nmodel = "gpt-5"')
        config.write_text(words)
        bot.start()
        reply = bot.say("Do the work, all of it.")
        before = len(model.requests())
        if "_day_" in str(limit):
            bot.say("And now?")
        return reply, before, len(model.requests()) - before
    finally:
        bot.close()
        model.close()


def _values(values: dict[str, object]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def main() -> int:
    """Reach every budget once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", action="store_true", help="the daemon from source")
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    options = parser.parse_args()
    argv = SOURCE if options.source else (str(options.binary.resolve()), "run")
    for name, limit, script, most, code in CASES:
        reply, requests, later = run(argv, limit, script)
        text = reply.text
        assert reply.result["status"] == "failed", (name, reply.result)
        assert reply.result["error"]["code"] == code, (name, reply.result)
        assert 1 <= requests <= most, (name, requests)
        assert later == 0, f"{name}: {later} requests left after the budget of the day was used up"
        assert "Done until then" in text and "`shell`" in text, (name, text)
        assert "Left to do:\n- write it down" in text, (name, text)
        print(f"{name}: {requests} requests, then {text.splitlines()[0]}")
    print(f"{len(CASES)} budgets reached, 0 requests left after them")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
