"""The gate is green in one command within 12 minutes, the binary's tests and the case rows included."""

from __future__ import annotations

import re
import subprocess
import time

from tests.bench import CHECKOUT

WITHIN_S = 12 * 60


def main() -> int:
    """Run the gate as a newcomer does."""
    began = time.monotonic()
    done = subprocess.run(
        ["python3", "-m", "tests"], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=False
    )
    took_s = time.monotonic() - began
    print("\n".join(done.stdout.splitlines()[-15:]))
    passed = [int(count) for count in re.findall(r"(\d+) passed", done.stdout)]
    assert done.returncode == 0 and len(passed) == 2, f"the gate ended with {done.returncode}"
    assert took_s <= WITHIN_S, f"the gate took {took_s:.0f} s"
    print(f"gate green, {sum(passed)} tests passed, in {took_s / 60:.1f} minutes (at most 12)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
