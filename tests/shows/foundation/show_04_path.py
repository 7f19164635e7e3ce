"""A scripted model asks for file_write, then shell, then answers; a client that left resumes by sequence.

python show_04_path.py [--binary dist/fermix-slim]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.bot import CHECKOUT, Bot, Model, fresh_id

WORDS = "the list says milk and eggs"
CALL = ["tool_call_start", "tool_call_complete", "tool_result"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    binary = parser.parse_args().binary.resolve()
    model = Model()
    bot = Bot(model, argv=(str(binary), "run"))
    target = bot.root / "list.txt"
    try:
        bot.start()
        model.script(
            {
                "rules": [
                    {
                        "when": "make a list",
                        "then": [
                            {"tool_calls": [_call("file_write", path=str(target), content="milk\n")]},
                            {"tool_calls": [_call("shell", script=f"cat {target}; echo and eggs")]},
                            {"say": WORDS, "chunks": 6, "delay_ms": 100},
                        ],
                    }
                ]
            }
        )
        whole = bot.say("make a list")
        check_whole(whole.names, whole.text, target)
        output = [event.data["text"] for event in whole.events if event.name == "tool_result"][1]
        assert "milk\nand eggs\n" in output, output
        joined = sum(leave_and_resume(bot, after) for after in range(1, 14, 3))
    finally:
        bot.close()
        model.close()
    print(
        f"file written, command's output in its result, {len(whole.events)} events in order; "
        f"a client that left at 5 different events and resumed got all {joined} events, none twice"
    )
    return 0


def _call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def check_whole(names: list[str], text: str, target: Path) -> None:
    assert text == WORDS, text
    assert target.read_text() == "milk\n"
    shown = [name for name in names if name not in ("phase_change", "progress")]
    assert shown[:7] == ["accepted", *CALL, *CALL], shown
    assert set(shown[7:-1]) == {"text_delta"} and shown[-1] == "done", shown


def leave_and_resume(bot: Bot, after: int) -> int:
    """How many events both connections brought together, each exactly once."""
    with bot.connect() as connection:
        stream = iter(connection.stream("message", {"text": "make a list", "client_id": fresh_id()}, 30.0))
        first = [next(stream) for _ in range(after + 1)]
    rest = bot.resume(first[0].data["turn_id"], first[-1].seq)
    seqs = [event.seq for event in first[1:]] + [event.seq for event in rest.events[1:]]
    assert seqs == list(range(1, len(seqs) + 1)), seqs
    deltas = [event for event in (*first, *rest.events) if event.name == "text_delta"]
    assert "".join(event.data["text"] for event in deltas) == WORDS
    return len(seqs)


if __name__ == "__main__":
    sys.exit(main())
