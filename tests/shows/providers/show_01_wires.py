"""Every wire and vendor keeps one contract, with our recordings, and with servers that others wrote.

python -m tests.shows.providers.show_01_wires [--source]     (from source in any case: wires are pure)
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

from fermix.providers.build import APIS
from tests.bench import CHECKOUT
from tests.contracts.test_wire_apis import CASSETTES, REQUIRED

SUITES = ("tests/contracts/test_wire_apis.py", "tests/contracts/test_vendors.py")
FOREIGN = "tests/shows/providers/foreign_servers.py"
TIMEOUT_S = 1200


def passed(*words: str) -> int:
    """How many tests passed. Raises: AssertionError with their output when one did not."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout[-1000:]
    return int(found[1])


def main() -> int:
    """Run the suites, then the foreign servers; the figure last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", action="store_true", help="no difference here")
    parser.parse_args()
    for api in APIS:
        tapes = {path.stem for path in (CASSETTES / api).glob("*.json")}
        assert tapes >= REQUIRED, f"{api} has no recording of: {', '.join(sorted(REQUIRED - tapes))}"
        print(f"{api}: {len(tapes)} recordings, all {len(REQUIRED)} that every wire must have")
    suite = passed(*SUITES)
    print(f"contract: {suite} tests passed")
    aimock = passed(FOREIGN, "-k", "test_aimock")
    print(f"aimock: {aimock} checks on {len(APIS)} wires passed")
    llama = passed(FOREIGN, "-k", "test_llama")
    print(f"xllamacpp: {llama} checks on chat completions passed")
    print(
        f"{len(APIS)} wires: {suite} contract tests, {aimock} checks against aimock, "
        f"{llama} against llama.cpp's server, none failed"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
