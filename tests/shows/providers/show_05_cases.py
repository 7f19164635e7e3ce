"""The case rows of providers and of the turn, and their wishes, name tests that pass or reasons.

python -m tests.shows.providers.show_05_cases [--source]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tests.bench import CHECKOUT
from tests.test_cases import CASES, REPORTS

FIRST, LAST = 69, 114
"""The rows of the list whose area begins with `prov` or `loop`, without a gap."""
ROWS = [f"R{number:03}" for number in range(FIRST, LAST + 1)]
WISHES = [f"W{number}" for number in (4, 5, 6, 7, 10, 11, 19, 32, 33, 40)]
TIMEOUT_S = 1200


def check_list(path: Path) -> None:
    """The rows above are those of the list. Raises: AssertionError with the difference."""
    rows = re.findall(r"^\| (R\d+) \| ([^ |]+) \|", path.read_text(), re.MULTILINE)
    listed = [row for row, area in rows if area.startswith(("prov/", "loop/"))]
    assert listed == ROWS, f"the list has other rows: {sorted({*listed} ^ {*ROWS})}"


def run_tests(tests: list[str], *, is_source: bool) -> None:
    """Run the named tests, those of the binary too. Raises: AssertionError with their output."""
    kind = [] if is_source else ["--binary=dist/fermix"]
    command = [sys.executable, "-m", "pytest", "-q", *kind, *tests]
    done = subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


def main() -> int:
    """Look for every row, then run what they name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", action="store_true", help="leave out the tests of the binary")
    options = parser.parse_args()
    if (REPORTS / "reports.md").exists():  # a clone elsewhere does without
        check_list(REPORTS / "reports.md")
    missing = [row for row in (*ROWS, *WISHES) if row not in CASES]
    assert not missing, f"tests/cases.toml says nothing of: {', '.join(missing)}"
    cases = {row: CASES[row] for row in (*ROWS, *WISHES)}
    reasons = {row: case["reason"] for row, case in cases.items() if "reason" in case}
    for row, reason in reasons.items():
        print(f"{row}: {reason}")
    tests = sorted({case["test"] for case in cases.values() if "test" in case})
    run_tests(tests, is_source=options.source)
    print(f"{len(cases)} rows: {len(tests)} tests passed, {len(reasons)} rows with a reason")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
