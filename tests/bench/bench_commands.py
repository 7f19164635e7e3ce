"""What a command costs through host and monitor over a bare spawn, in a process as large as the daemon."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fermix.clock import SystemClock
from fermix.process import Command, CommandHost, CommandSettings, GroupLedger
from fermix.tasks import Cancel, TaskGroup, sleep
from tests.bench import Figure, percentile

ROUNDS = 200
BALLAST_BYTES = 64 * 1024 * 1024
"""Filled memory, since a fork may copy page tables: with the interpreter about the daemon's size."""
PROGRAM = "/bin/true"


def measure() -> Iterator[Figure]:
    """Alternating rounds, so that host and bare spawn see the same machine."""
    ballast = bytearray(os.urandom(4096)) * (BALLAST_BYTES // 4096)
    with tempfile.TemporaryDirectory(prefix="fermix-bench-") as folder:
        host = CommandHost(GroupLedger(Path(folder) / "run.groups"), CommandSettings, SystemClock())
        command = Command(argv=(PROGRAM,), cwd=Path("/"), environment={}, timeout_s=10)
        bare: list[float] = []
        hosted: list[float] = []
        for _ in range(ROUNDS):
            bare.append(_took_ms(_spawn_bare))
            hosted.append(_took_ms(lambda: host.run(command, Cancel())))
        gap_ms = _longest_hub_gap_ms(lambda: [host.run(command, Cancel()) for _ in range(100)])
        host.stop(5.0)
    del ballast
    added_ms = percentile(hosted, 0.5) - percentile(bare, 0.5)
    yield Figure("a command through the host, over a bare spawn, p50", added_ms, 5, "ms")
    yield Figure("longest gap of the hub during 100 commands", gap_ms, 15, "ms")


def _took_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _spawn_bare() -> None:
    os.waitpid(os.posix_spawn(PROGRAM, [PROGRAM], {}), 0)


def _longest_hub_gap_ms(work: Callable[[], object]) -> float:
    gaps_ms: list[float] = []
    tasks = TaskGroup("bench")

    def tick() -> None:
        last = time.perf_counter()
        while True:
            sleep(0.001)
            now = time.perf_counter()
            gaps_ms.append((now - last) * 1000 - 1)
            last = now

    tasks.start(tick)
    work()
    tasks.stop(1.0)
    return max(gaps_ms)
