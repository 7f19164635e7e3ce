"""One measured number beside what it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the bench table."""

    name: str
    value: float
    unit: str
    target: str
    """As the design words it, e.g. `<= 20 ms`."""
