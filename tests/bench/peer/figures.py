"""The table of figures: kept as JSON, shown on a terminal and in the README. It measures nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

KEPT = Path(__file__).resolve().parent.parent / "peer.json"
"""The figures of the last `--write`; the README is rendered from these."""

ABSENT = "–"


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was measured of one agent, or why it was not."""

    measured: float | None = None
    reason: str = ""
    """Said in a footnote when `measured` is None."""


class Figure(msgspec.Struct, frozen=True):
    """One row; less is better in all but plain counts, which only explain another row."""

    name: str
    unit: str
    """Empty for a plain count."""
    values: tuple[Value, Value]
    """fermix's, then the other agent's."""

    @property
    def ratio(self) -> float | None:
        """How many times fermix's value the other one is; None for counts, and when a value is missing."""
        ours, theirs = (value.measured for value in self.values)
        return theirs / ours if self.unit and ours and theirs is not None else None


class Comparison(msgspec.Struct, frozen=True):
    """All figures of one run, and what they hold for."""

    date: str
    machine: str
    agents: tuple[str, str]
    """Names with versions, in the order of `Figure.values`."""
    figures: tuple[Figure, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return all(value.measured is not None for figure in self.figures for value in figure.values)


def load(path: Path = KEPT) -> Comparison:
    """The figures kept in a file."""
    return msgspec.json.decode(path.read_bytes(), type=Comparison)


def save(comparison: Comparison, path: Path = KEPT) -> None:
    """Keep the figures for `load`, readable in a diff."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(comparison)) + b"\n")


def markdown(comparison: Comparison) -> str:
    """The table with its footnotes and the line that says when and where."""
    head, *rows = _cells(comparison)
    lines = [head, ["---", "---:", "---:", "---:"], *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    where = f"Measured on {comparison.date}: {comparison.machine}. Medians; less is better."
    return "\n\n".join([table, *_footnotes(comparison), where])


def plain(comparison: Comparison) -> str:
    """The same for a terminal, its columns aligned."""
    lines = _cells(comparison)
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    table = "\n".join(
        f"{line[0]:<{widths[0]}}"
        + "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        for line in lines
    )
    return "\n".join([table, *_footnotes(comparison)])


def _cells(comparison: Comparison) -> list[list[str]]:
    """Head and rows, four cells each; a missing value carries the number of its footnote."""
    numbers = iter(range(1, 1000))
    lines = [["Figure", *comparison.agents, "Ratio"]]
    for figure in comparison.figures:
        shown = [_shown(value, figure.unit, numbers) for value in figure.values]
        ratio = ABSENT if figure.ratio is None else f"{_digits(figure.ratio)}×"
        lines.append([figure.name, *shown, ratio])
    return lines


def _shown(value: Value, unit: str, numbers: Iterator[int]) -> str:
    if value.measured is None:
        return f"{ABSENT} ({next(numbers)})"
    return f"{_digits(value.measured)} {unit}" if unit else f"{value.measured:.0f}"


def _digits(number: float) -> str:
    """Two or three digits that count: nobody can rely on more."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def _footnotes(comparison: Comparison) -> list[str]:
    missing = (
        (agent, value.reason)
        for figure in comparison.figures
        for agent, value in zip(comparison.agents, figure.values, strict=True)
        if value.measured is None
    )
    return [f"({number}) {agent}: {reason}" for number, (agent, reason) in enumerate(missing, start=1)]
