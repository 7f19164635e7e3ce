"""Every figure within its target: starts, memory, latency, a thousand conversations, growth, sizes."""

from __future__ import annotations

import subprocess
import sys

from tests.bench import CHECKOUT


def main() -> int:
    """Run the benchmarks; their table is printed as it comes."""
    command = [sys.executable, "-m", "tests.bench"]
    done = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    figures = [line for line in done.stdout.splitlines() if line.endswith((" ok", " MISSED"))]
    assert figures, "the benchmarks printed no figure"
    missed = [line for line in figures if line.endswith(" MISSED")]
    print(f"{len(figures) - len(missed)} of {len(figures)} figures within their targets")
    return int(bool(missed) or done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
