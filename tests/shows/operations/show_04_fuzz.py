"""Schemathesis for 5 minutes, then 10,000 hostile requests: no 5xx, no hang, flat memory.

python show_04_fuzz.py [--seconds 300] [--requests 10000] [--binary dist/fermix-slim] [--source]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.bot import CHECKOUT, SOURCE, Bot, Model
from tests.shows.environment import environment
from tests.shows.operations.hostile_http import GoodClient, SlowClients, Target, attack_all, send_a_gigabyte

PACKAGES = (
    "schemathesis==4.32.5",
    "openapi-spec-validator==0.9.0",
    "openapi-schema-validator[ecma-regex]==0.9.0",  # patterns as JSON Schema has them, not as Python does
)
MEMORY_MB = 10.0
SERVED_WITHIN_S = 1.0
ANSWERED_WITHIN_S = 30
WARM_SECONDS = 60
WARM_REQUESTS = 300
CONFIG = "failed_tokens_per_minute = 10000\n"
"""Schemathesis tries wrong tokens by the hundred and expects 401 each time, not 429."""


REFUSED_BY_LENGTH = """\
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 411, 413, 414, 415, 422, 428, 429, 431]
"""
"""Its own list lacks the refusals for what is too long."""


class Daemon:
    """A daemon under attack."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        self.worker = psutil.Process(bot.worker)
        self.target = Target(bot.address, bot.token)

    def memory_mb(self) -> float:
        """What the worker alone takes, once it is quiet."""
        time.sleep(2.0)
        return float(self.worker.memory_full_info().pss) / 1e6

    def check(self) -> None:
        """It is the same process, and well."""
        assert self.bot.worker == self.worker.pid, "the worker was replaced"
        assert self.bot.status()["state"] == "ready"
        wrong = re.findall(r"^\S+ (?:ERROR|CRITICAL) .*", self.bot.log_text(), re.MULTILINE)
        assert not wrong, f"the log holds errors: {wrong[:5]}"


def fuzz(daemon: Daemon, seconds: int) -> int:
    """How many requests Schemathesis made. Raises: AssertionError when a check of it failed."""
    folder = environment("fuzz", PACKAGES)
    url = f"http://{daemon.target.address}/openapi.json"
    command = [
        folder / "bin/schemathesis",
        *("run", url, "--header", f"Authorization: Bearer {daemon.target.token}", "--no-color"),
        *("--checks", "all", "--max-time", str(seconds), "--request-timeout", str(ANSWERED_WITHIN_S)),
        *("--workers", "1", "--generation-database", "none"),
    ]
    with tempfile.TemporaryDirectory(prefix="fx-fuzz-") as cwd:
        (Path(cwd) / "schemathesis.toml").write_text(REFUSED_BY_LENGTH)
        done = subprocess.run(
            command, cwd=cwd, stdout=subprocess.PIPE, text=True, timeout=seconds + 300, check=False
        )
    assert done.returncode == 0, f"Schemathesis found faults:\n{done.stdout[-20_000:]}"
    made = re.search(r"(\d+) generated", done.stdout)
    assert made, done.stdout[-3000:]
    return int(made[1])


def validate(daemon: Daemon) -> None:
    """The description is what OpenAPI 3.1 allows. Raises: CalledProcessError."""
    folder = environment("fuzz", PACKAGES)
    fetch = (
        "import sys, json, urllib.request as r; from openapi_spec_validator import validate;"
        "q = r.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]});"
        "validate(json.load(r.urlopen(q, timeout=20)))"
    )
    url = f"http://{daemon.target.address}/openapi.json"
    subprocess.run([folder / "bin/python", "-c", fetch, url, daemon.target.token], timeout=120, check=True)


def besiege(daemon: Daemon, requests: int) -> str:
    """What came of the hostile requests. Raises: AssertionError when one was not refused in words."""
    attack_all(daemon.target, WARM_REQUESTS)
    send_a_gigabyte(daemon.target)
    before = daemon.memory_mb()
    good, slow = GoodClient(daemon.target), SlowClients(daemon.target)
    good.start()
    slow.start()
    began = time.monotonic()
    answers = attack_all(daemon.target, requests)
    gigabyte, sent_mb = send_a_gigabyte(daemon.target)
    took_s = time.monotonic() - began
    for thread in (good, slow):
        thread.ending.set()
        thread.join(60)
    if good.error is not None:
        raise good.error
    grown_mb = daemon.memory_mb() - before
    for line, count in sorted(answers.items()):
        print(f"{count:>6}  {line}")
    failed = [line for line in answers if "FAILED" in line]
    assert not failed, f"not refused in words: {failed}"
    assert gigabyte == "413 body_too_large", gigabyte
    assert good.longest_s <= SERVED_WITHIN_S, f"a good client waited {good.longest_s:.2f} s"
    assert abs(grown_mb) <= MEMORY_MB, f"memory changed by {grown_mb:.1f} MB"
    return (
        f"{sum(answers.values())} hostile requests in {took_s:.0f} s beside {slow.opened} slow clients: "
        f"all refused, 1 GB in chunks after {sent_mb} MB, memory {grown_mb:+.1f} MB, "
        f"{good.served} good requests, the slowest {good.longest_s * 1000:.0f} ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    parser.add_argument("--source", action="store_true", help="the daemon from source instead")
    chosen = parser.parse_args()
    model = Model({"rules": [{"when": "", "then": [{"say": "fine"}]}]})
    argv = SOURCE if chosen.source else (str(chosen.binary.resolve()), "run")
    bot = Bot(model, argv=argv, full=True, config=CONFIG)
    try:
        bot.start()
        daemon = Daemon(bot)
        validate(daemon)
        fuzz(daemon, min(WARM_SECONDS, chosen.seconds))
        before = daemon.memory_mb()
        made = fuzz(daemon, chosen.seconds)
        grown_mb = daemon.memory_mb() - before
        daemon.check()
        print(f"Schemathesis: {made} requests in {chosen.seconds} s, memory {grown_mb:+.1f} MB")
        assert abs(grown_mb) <= MEMORY_MB, f"memory changed by {grown_mb:.1f} MB while fuzzed"
        siege = besiege(daemon, chosen.requests)
        daemon.check()
        assert bot.say("still there?").text == "fine"
    finally:
        bot.close()
        model.close()
    print(
        f"Schemathesis {made} requests in {chosen.seconds} s, no fault, memory {grown_mb:+.1f} MB; {siege}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
