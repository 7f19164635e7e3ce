# ruff: noqa: E402 - the patching must come before every other import, as in the daemon
"""A stand-in for the worker: runs commands through a CommandHost, to be killed while they run.

`owner.py LEDGER [--fallback] KIND MARK …`: one nasty command per pair; prints `running` when all run.
"""

from gevent import monkey

monkey.patch_all()

import os
import sys
from pathlib import Path

if "--fallback" in sys.argv:
    sys.argv.remove("--fallback")
    sys.modules["fermix.native._native"] = None  # type: ignore[assignment] # as if it had not been built

from fermix import native
from fermix.clock import SystemClock
from fermix.process import Command, CommandHost, CommandSettings, GroupLedger
from fermix.tasks import Cancel, TaskGroup, sleep

NASTY = Path(__file__).with_name("nasty.py")


def main() -> None:
    native.become_subreaper()
    ledger = GroupLedger(Path(sys.argv[1]))
    host = CommandHost(ledger, lambda: CommandSettings(grace_s=1.0), SystemClock())
    tasks = TaskGroup("owner")
    words = sys.argv[2:]
    for kind, mark in zip(words[::2], words[1::2], strict=True):
        command = Command(
            argv=(sys.executable, "-S", "-E", str(NASTY), kind, mark),
            cwd=Path("/"),
            environment={"PATH": os.defpath},
            timeout_s=300,
            output_limit_bytes=1 << 40,
        )
        tasks.start(lambda command=command: host.run(command, Cancel(), lambda text: None))
    while len(ledger) < len(words) // 2:
        sleep(0.01)
    print("running", flush=True)
    tasks.join(300)


if __name__ == "__main__":
    main()
