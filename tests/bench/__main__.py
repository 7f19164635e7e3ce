"""Runs the benchmarks and prints a table: `python3 -m tests.bench [NAME...]`, or `--peer [--write]`."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PYTHON = CHECKOUT / ".venv/bin/python"
ROW = "{:<58} {:>12} {:>12}  {}"


def main(arguments: list[str]) -> int:
    """Build what is measured, measure, print; 0 when every target is reached."""
    if "--peer" in arguments:
        return peer([word for word in arguments if word != "--peer"])
    if Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        if subprocess.run(["./release.sh"], cwd=CHECKOUT, check=False).returncode:
            return 1
        command = [str(PYTHON), "-m", "tests.bench", *arguments]
        return subprocess.run(command, cwd=CHECKOUT, check=False).returncode
    names = sorted(path.stem for path in (CHECKOUT / "tests/bench").glob("bench_*.py"))
    unknown = set(arguments) - {name.removeprefix("bench_") for name in names}
    if unknown:
        known = ", ".join(name.removeprefix("bench_") for name in names)
        print(f"no benchmark named {', '.join(sorted(unknown))}; there are: {known}", file=sys.stderr)
        return 2
    print(ROW.format("figure", "target", "measured", "ok"))
    missed = 0
    for name in names:
        if arguments and name.removeprefix("bench_") not in arguments:
            continue
        for figure in import_module(f"tests.bench.{name}").measure():
            verdict = "ok" if figure.is_ok else "MISSED"
            missed += not figure.is_ok
            target, measured = (f"{value:.4g} {figure.unit}" for value in (figure.target, figure.measured))
            print(ROW.format(figure.name, target, measured, verdict), flush=True)
    print(f"{missed} missed" if missed else "all targets reached")
    return int(bool(missed))


def peer(arguments: list[str]) -> int:
    """Figures of fermix beside those of another agent; they need the checkout's environment only."""
    if Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        environment = [sys.executable, str(CHECKOUT / "build/environment.py")]
        if subprocess.run(environment, cwd=CHECKOUT, check=False).returncode:
            return 1
    command = [str(PYTHON), "-m", "tests.bench.peer", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
