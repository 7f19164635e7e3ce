"""What cleaning takes out of recorded command outputs, and how long a long one takes."""

from __future__ import annotations

from collections.abc import Iterator

from fermix.capabilities.cleaning import PIECE_LENGTH, clean
from tests.bench import CHECKOUT, Figure, median_ms

CORPUS = CHECKOUT / "tests/fixtures/tool_outputs"
"""Outputs of real commands: installers, compilers, test runners, git, listings, logs, encoded files."""


def measure() -> Iterator[Figure]:
    """The share of bytes that is left, for each recording and all together."""
    outputs = {path.stem: path.read_bytes().decode() for path in sorted(CORPUS.glob("*.txt"))}
    before = after = 0
    for name, output in outputs.items():
        left, whole = len(clean(output).encode()), len(output.encode())
        before, after = before + whole, after + left
        yield Figure(f"left of {name} ({whole:,} bytes)", 100 * left / whole, 100, "%")
    yield Figure(f"left of all {len(outputs)} outputs ({before:,} bytes)", 100 * after / before, 60, "%")
    long = "".join(outputs.values()) * 4
    pieces = len(long) / PIECE_LENGTH
    yield Figure("cleaning 64 K characters", median_ms(lambda: clean(long)) / pieces, 15, "ms")
