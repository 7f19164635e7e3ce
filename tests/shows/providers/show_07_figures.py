"""What fermix adds to a turn of 30 tools and 200 messages and to a long talk, and takes out of outputs.

python -m tests.shows.providers.show_07_figures [--source]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from tests.bench import Figure, bench_cleaning, bench_context, bench_turns


def figures() -> Iterator[Figure]:
    """Every figure with its target."""
    yield from bench_turns.turn_overhead()
    yield from bench_turns.token_latency()
    yield from bench_context.measure()
    yield from bench_cleaning.measure()


def main(words: list[str]) -> int:
    """0 when every target is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", action="store_true", help="as without: the figures are the source's")
    parser.parse_args(words)
    measured = missed = 0
    for figure in figures():
        measured += 1
        missed += not figure.is_ok
        verdict = "ok" if figure.is_ok else "MISSED"
        print(
            f"{figure.name}: {figure.measured:.4g} of {figure.target:g} {figure.unit} {verdict}", flush=True
        )
    print(f"{measured - missed} of {measured} figures reach their target")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
