"""Whether tests that a list names are really there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def missing_of(tests: Collection[str], *options: str) -> list[str]:
    """Those of the node ids, without parameters, that pytest does not collect; missing files first."""
    files = sorted({test.partition("::")[0] for test in tests})
    if gone := [file for file in files if not (CHECKOUT / file).exists()]:
        return gone
    # A process of its own, so that the check also holds when only part of the tests is run.
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, *files],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert listed.returncode == 0, listed.stdout[-2000:] + listed.stderr[-2000:]
    collected = {line.partition("[")[0] for line in listed.stdout.splitlines() if "::" in line}
    return sorted(set(tests) - collected)
