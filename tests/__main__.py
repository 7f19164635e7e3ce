"""The whole gate, the same here and in CI: `python3 -m tests [--fix] [--fast] [pytest arguments]`.

Needs only Python 3.11+: it makes `.venv` in the checkout, installs the pinned packages, builds the native
module and the binary, and reuses all of it while nothing changed. `--fix` writes formatting and generated
README tables instead of only checking them; `--fast` leaves the binary out. Anything else goes to pytest.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile

CHECKOUT = Path(__file__).resolve().parent.parent
TOOLS = CHECKOUT / ".venv/bin"
BINARY = CHECKOUT / "dist/fermix"
NOTHING_FOUND = 5
"""pytest's exit status when no test was chosen."""
CODE = ("fermix", "tests", "build", "fermix.spec")

CHECKS = (
    ("ruff format --check", "ruff", "format", "--check", *CODE),
    ("ruff check", "ruff", "check", "--quiet", *CODE),
    ("mypy", "mypy"),
    ("lint-imports", "lint-imports"),
)
FIXES = (
    ("ruff format", "ruff", "format", *CODE),
    ("ruff check --fix", "ruff", "check", "--fix", "--quiet", *CODE),
    ("README tables", "python", "-m", "tests.readme"),
)


def main(arguments: list[str]) -> int:
    """Run every step, even after one failed, pytest last; 0 when all passed."""
    to_fix, to_skip_binary = "--fix" in arguments, "--fast" in arguments
    rest = [word for word in arguments if word not in ("--fix", "--fast")]
    if step("environment", sys.executable, str(CHECKOUT / "build/environment.py")):
        return 1
    failed = []
    for name, tool, *words in (*FIXES, *CHECKS) if to_fix else CHECKS:
        if step(name, str(TOOLS / tool), *words, is_quiet=True):
            failed.append(name)
    if not to_skip_binary and step("binary", "./release.sh"):
        failed.append("binary")
    if failed:
        print(f"gate: failed before the tests: {', '.join(failed)}", flush=True)
    return run_tests(rest, with_binary=not to_skip_binary and "binary" not in failed) or bool(failed)


def run_tests(rest: list[str], *, with_binary: bool) -> int:
    """The tests of the source, and beside them those of the binary: most of both is waiting for daemons.

    What the binary's say is kept back until the others have ended.
    """
    command = [str(TOOLS / "python"), "-m", "pytest", "-q", *rest]
    with TemporaryFile() as said:
        beside = None
        if with_binary:
            words = [*command, "-m", "binary", f"--binary={BINARY}", "-p", "no:cacheprovider"]
            beside = subprocess.Popen(
                words, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )
        results = [subprocess.run([*command, "-m", "not binary"], cwd=CHECKOUT, check=False).returncode]
        if beside is not None:
            results.append(beside.wait())
            said.seek(0)
            print("gate: tests of the binary", flush=True)
            print(said.read().decode(errors="replace"), end="", flush=True)
    if 0 in results:  # one half may have nothing to do with the tests that were asked for
        results = [each for each in results if each != NOTHING_FOUND]
    return next((each for each in results if each), 0)  # not the largest: a signal's is negative


def step(name: str, *command: str, is_quiet: bool = False) -> int:
    """Run one step and say how long it took; its exit status. A quiet one is only heard when it fails."""
    started = time.monotonic()
    output = subprocess.PIPE if is_quiet else None
    done = subprocess.run(
        command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
    )
    if done.returncode and is_quiet:
        sys.stdout.write((done.stdout + done.stderr).decode(errors="replace"))
    verdict = f"FAILED ({done.returncode})" if done.returncode else "ok"
    print(f"gate: {name}: {verdict}, {time.monotonic() - started:.1f} s", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
