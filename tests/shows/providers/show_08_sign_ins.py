"""Show 8: two processes renew one rotating sign-in; none is lost, and a logout stays.

python show_08_sign_ins.py [--rounds 100] [--logouts 20]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.bot import CHECKOUT

WORKER = "tests.shows.providers.sign_in_worker"


class Fake:
    """The issuer in a process of its own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.auth.issuer", "--agreed"], stdout=subprocess.PIPE, cwd=CHECKOUT
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def seen(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/_seen", timeout=10) as answer:
            return dict(json.loads(answer.read()))

    def trouble(self, **how: object) -> None:
        body = json.dumps(how).encode()
        request = urllib.request.Request(f"{self.url}/_trouble", data=body, method="POST")
        urllib.request.urlopen(request, timeout=10).close()


class Worker:
    """One process with the home's sign-ins."""

    def __init__(self, home: Path, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", WORKER, str(home), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )
        self.told()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def asked(self, line: str) -> dict[str, Any]:
        self.tell(line)
        return self.told()


def together(workers: list[Worker], line: str) -> list[dict[str, Any]]:
    """What each says when all are told at once."""
    for each in workers:
        each.tell(line)
    return [each.told() for each in workers]


def in_step(fake: Fake, workers: list[Worker], rounds: int) -> None:
    """Both find the same token refused, again and again: one renewal a round."""
    before = fake.seen()["refreshes"]
    for _ in range(rounds):
        one, two = together(workers, "renew")
        assert one == two and "access" in one, (one, two)
    seen = fake.seen()
    assert seen["refused"] == 0, f"a token was used twice {seen['refused']} times"
    # One that looks only after the other has stored finds a fresh token, and has that renewed.
    assert rounds <= seen["refreshes"] - before <= 2 * rounds, seen


def free(fake: Fake, workers: list[Worker], rounds: int) -> int:
    """Both renew as fast as they can, while the issuer is now and then busy."""
    before = fake.seen()["refreshes"]
    answers = together(workers, f"renew {rounds}")
    assert all("access" in each for each in answers), answers
    seen = fake.seen()
    assert seen["refused"] == 0, f"a token was used twice {seen['refused']} times"
    return int(seen["refreshes"] - before)


def busy(fake: Fake, workers: list[Worker]) -> None:
    """An issuer without time costs an answer, not the sign-in."""
    fake.trouble(statuses=[503, 429, 500, 502], expires_in=3600)
    errors = [each for _ in range(2) for each in together(workers, "renew")]
    assert all(each.get("error") == "issuer_busy" or "access" in each for each in errors), errors
    fake.trouble(expires_in=3600)
    assert all("access" in each for each in together(workers, "renew"))


def logouts(fake: Fake, workers: list[Worker], leaver: Worker, times: int) -> int:
    """Signed out at any moment of a renewal: nobody is signed in after it, and no token counts."""
    fake.trouble(delay_s=0.05, expires_in=3600)
    during = 0
    for _ in range(times):
        assert "access" in leaver.asked("login")
        before = fake.seen()["refreshes"]
        for each in workers:
            each.tell("renew 2")
        time.sleep(random.uniform(0.0, 0.12))
        assert leaver.asked("logout") == {"gone": True, "told": True}
        answers = [each.told() for each in workers]
        during += any(each.get("error") == "sign_in_missing" for each in answers)
        seen = fake.seen()
        assert together(workers, "renew") == [{"error": "sign_in_missing"}] * len(workers)
        assert seen["counting"] == 0, f"{seen['counting']} tokens count on after a logout"
        assert seen["refreshes"] - before <= 4
    fake.trouble(expires_in=3600)
    return during


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--logouts", type=int, default=20)
    asked = parser.parse_args()
    fake = Fake()
    processes = [fake.process]
    with tempfile.TemporaryDirectory(prefix="fx-") as folder:
        home = Path(folder)
        try:
            workers = [Worker(home, fake.url) for _ in range(2)]
            leaver = Worker(home, fake.url)
            processes += [each.process for each in (*workers, leaver)]
            assert "access" in leaver.asked("login")
            in_step(fake, workers, asked.rounds)
            renewed = free(fake, workers, asked.rounds)
            busy(fake, workers)
            assert leaver.asked("logout")["gone"]
            during = logouts(fake, workers, leaver, asked.logouts)
            seen = fake.seen()
        finally:
            for each in processes:
                each.kill()
                each.wait(10)
    print(
        f"{seen['refreshes']} renewals by two processes ({renewed} of them racing), "
        f"{seen['refused']} with a token used before; {asked.logouts} logouts, "
        f"{during} in the middle of a renewal, 0 undone"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
