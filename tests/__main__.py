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

CHECKOUT = Path(__file__).resolve().parent.parent
TOOLS = CHECKOUT / ".venv/bin"
BINARY = CHECKOUT / "dist/fermix"
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
    if to_skip_binary:
        rest = ["-m", "not binary", *rest]
    elif step("binary", "./release.sh"):
        failed.append("binary")
    else:
        rest = [f"--binary={BINARY}", *rest]
    if failed:
        print(f"gate: failed before the tests: {', '.join(failed)}", flush=True)
    tests = subprocess.run([str(TOOLS / "python"), "-m", "pytest", "-q", *rest], cwd=CHECKOUT, check=False)
    return tests.returncode or bool(failed)


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
