"""Benchmarks: measured figures beside their targets, run by hand with `python3 -m tests.bench [NAME...]`.

A benchmark is `tests/bench/bench_NAME.py` with `measure()`, which yields figures as it gets them. The table
and its targets are section 8 of the architecture. Medians or ratios within one run; never part of the gate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

CHECKOUT = Path(__file__).resolve().parent.parent.parent
BINARY = CHECKOUT / "dist/fermix"
SLIM = CHECKOUT / "dist/fermix-slim"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number; it is fine when it is at most its target."""

    name: str
    measured: float
    target: float
    unit: str

    @property
    def is_ok(self) -> bool:
        """Whether the target is reached."""
        return self.measured <= self.target


def median_ms(work: Callable[[], object], *, runs: int = 15, warm_up: int = 2) -> float:
    """The median time of a piece of work in milliseconds, after some runs that do not count."""
    times = []
    for number in range(warm_up + runs):
        started = perf_counter()
        work()
        if number >= warm_up:
            times.append((perf_counter() - started) * 1000)
    return median(times)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
