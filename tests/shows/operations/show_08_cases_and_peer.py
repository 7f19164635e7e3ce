"""The case rows of operations name tests that pass or reasons, and the README shows the peer's figures.

The figures themselves are measured by `python3 -m tests.bench --peer --write`.
"""

from __future__ import annotations

import subprocess
import sys

from tests import readme
from tests.bench import CHECKOUT
from tests.bench.peer.figures import load
from tests.test_cases import ALSO_REQUIRED, CASES

WEB = {f"R{number}" for number in range(194, 203)}
SERVICE = {f"R{number}" for number in range(185, 189)}
FIGURES = ("version", "healthy", "idle memory", "one-shot", "turn 50", "turn 300", "request bytes")
"""What the comparison must say, as words of the names of its rows."""


def run_tests(tests: list[str]) -> None:
    """Run the named tests, those of the binary too. Raises: AssertionError with their output."""
    command = [sys.executable, "-m", "pytest", "-q", "--binary=dist/fermix", *tests]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def main() -> int:
    """Run the rows' tests, then look at the table."""
    rows = {row: CASES[row] for row in sorted(WEB | SERVICE | ALSO_REQUIRED)}
    reasons = {row: case["reason"] for row, case in rows.items() if "reason" in case}
    for row, reason in reasons.items():
        print(f"{row}: {reason}")
    tests = sorted({case["test"] for case in rows.values() if "test" in case})
    run_tests(tests)
    written = readme.written(readme.README.read_text(), "peer")
    assert written == readme.render("peer"), "run: python3 -m tests --fix"
    names = [figure.name for figure in load().figures]
    missing = [word for word in FIGURES if not any(word in name for name in names)]
    assert not missing, f"the comparison says nothing of: {', '.join(missing)}"
    print(
        f"{len(rows)} rows: {len(tests)} tests passed, {len(reasons)} with a reason; "
        f"the README shows {len(names)} figures beside the peer's"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
