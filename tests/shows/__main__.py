"""Runs the shows of an area: `python3 -m tests.shows AREA [NUMBER...]`; logs stand in dist/shows/."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
SHOWS = CHECKOUT / "tests/shows"
LOGS = CHECKOUT / "dist/shows"
PYTHON = CHECKOUT / ".venv/bin/python"
TIMEOUT_S = 3600


def main(arguments: list[str]) -> int:
    """Run what was asked for, print a line for each show; 0 when all hold."""
    areas = sorted(path.parent.name for path in SHOWS.glob("*/__init__.py"))
    if not arguments or arguments[0] not in areas:
        print(f"usage: python3 -m tests.shows AREA [NUMBER...]; areas: {', '.join(areas)}", file=sys.stderr)
        return 2
    area, *numbers = arguments
    scripts = sorted(SHOWS.glob(f"{area}/show_*.py"))
    if numbers:
        wanted = {int(number) for number in numbers}
        scripts = [script for script in scripts if number_of(script) in wanted]
    if not scripts:
        print(f"no such show in {SHOWS / area}", file=sys.stderr)
        return 2
    if subprocess.run(["./release.sh"], cwd=CHECKOUT, check=False).returncode:
        return 1
    LOGS.mkdir(parents=True, exist_ok=True)
    held = [show(script) for script in scripts]
    return int(not all(held))


def number_of(script: Path) -> int:
    """5 for show_05_kills.py."""
    found = re.match(r"show_(\d+)_", script.name)
    return int(found[1]) if found else 0


def show(script: Path) -> bool:
    """Run one show with its output in a log; whether it held."""
    name = script.stem.removeprefix("show_").replace("_", " ")
    log = LOGS / f"{script.parent.name}-{script.stem}.log"
    print(f"{name} …", end=" ", flush=True)
    started = time.monotonic()
    with log.open("wb") as output:
        try:
            module = f"tests.shows.{script.parent.name}.{script.stem}"
            command = [str(PYTHON), "-m", module]
            status = subprocess.run(
                command,
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    figure = lines[-1] if lines else "nothing printed"
    verdict = "holds" if status == 0 else f"FAILED ({status}), see {log.relative_to(CHECKOUT)}"
    print(f"{verdict}, {time.monotonic() - started:.0f} s: {figure}", flush=True)
    return status == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
