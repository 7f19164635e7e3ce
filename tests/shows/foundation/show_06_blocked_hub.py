"""A tool blocks the hub for 30 s, with and without the GIL: stack logged, worker replaced, others answered.

python show_06_blocked_hub.py
"""

from __future__ import annotations

import sys
import threading
import time

from fermix.ipc.client import Result
from fermix.ipc.following import TurnWatch
from tests.bot import Bot, fresh_id, running, wait_for

BLOCKED_S = 30
LOGGED_WITHIN_S = 2.0
REPLACED_WITHIN_S = 18.0

SCRIPT = {
    "rules": [
        {
            "when": f"block {kept}",
            "then": [
                {
                    "tool_calls": [
                        {
                            "name": "block_hub",
                            "arguments": {"seconds": BLOCKED_S, "keeps_gil": kept == "kept"},
                        }
                    ]
                },
                {"say": "The tool never came back."},
            ],
        }
        for kept in ("kept", "free")
    ]
    + [{"when": "", "then": [{"say": "Still here."}]}]
}


class Person(threading.Thread):
    """Says one thing and follows its turn through the worker's death."""

    def __init__(self, bot: Bot, session: str, text: str) -> None:
        super().__init__(daemon=True)
        self.bot = bot
        self.message = {"text": text, "session": session, "client_id": fresh_id()}
        self.answer: str | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            watch = TurnWatch(self.bot.connect, self.message, patience_s=90.0)
            while self.answer is None:
                answer = watch.read(90.0)
                assert answer is not None, f"{self.message['session']}: silence"
                if isinstance(answer, Result):
                    self.answer = str(answer.data["text"])
        except BaseException as error:  # a thread's boundary: the main thread raises it
            self.error = error

    def result(self) -> str:
        self.join(90)
        if self.error is not None:
            raise self.error
        assert self.answer is not None, f"{self.message['session']} still waits"
        return self.answer


def block(bot: Bot, kept: str) -> tuple[float, float]:
    """Seconds until the stack was logged, and until another worker was ready."""
    worker = bot.worker
    mark = len(bot.log_text())
    began = time.monotonic()
    blocker = Person(bot, f"blocker-{kept}", f"block {kept}")
    blocker.start()

    def is_logged() -> bool:
        text = bot.log_text()[mark:]
        return "Stack (most recent call first)" in text and "in block_hub" in text

    wait_for("the blocking stack in the log", is_logged)
    logged_s = time.monotonic() - began
    assert bot.worker == worker
    other = Person(bot, f"other-{kept}", "Are you there?")
    other.start()
    wait_for("another worker to be ready", lambda: bot.is_ready() and bot.worker != worker, 40.0)
    replaced_s = time.monotonic() - began

    assert other.result() == "Still here."
    assert blocker.result(), "the turn whose tool blocked was never ended"
    print(
        f"GIL {kept}: stack logged after {logged_s:.2f} s, worker replaced after {replaced_s:.1f} s",
        flush=True,
    )
    return logged_s, replaced_s


def main() -> int:
    with running(SCRIPT) as bot:
        times = [block(bot, kept) for kept in ("kept", "free")]
    logged_s, replaced_s = (max(values) for values in zip(*times, strict=True))
    assert logged_s <= LOGGED_WITHIN_S, f"the stack was logged only after {logged_s:.2f} s"
    assert replaced_s <= REPLACED_WITHIN_S, f"the worker was replaced only after {replaced_s:.1f} s"
    print(
        f"hub blocked in C twice: stack logged within {logged_s:.2f} s, worker replaced within "
        f"{replaced_s:.1f} s (at most {REPLACED_WITHIN_S:g}), the other conversation was answered"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
