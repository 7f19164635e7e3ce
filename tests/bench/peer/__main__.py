"""Measures both agents in turn and prints the table: `python -m tests.bench.peer [--write]`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fermix.errors import FermixError
from tests import readme
from tests.bench import BINARY, CHECKOUT, SLIM
from tests.bench.peer import loopback
from tests.bench.peer.agents import Agent, fermix, nanobot
from tests.bench.peer.figures import Comparison, Figure, Value, plain, save
from tests.bench.peer.install import Installed, install
from tests.bench.peer.measure import MEASUREMENTS, SCRIPT, Measurement
from tests.bench.peer.processes import NotMeasured, end_all
from tests.bot import Model

WRITE = "--write"

BUSY_LOAD = 0.5
"""Other work does not slow both alike: it takes most from the agent that computes most."""


def main(words: list[str]) -> int:
    """Install, go where there is no network, measure, print; 0 when every figure could be had."""
    unknown = set(words) - {WRITE, loopback.INSIDE}
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; there is: {WRITE}", file=sys.stderr)
        return 2
    if loopback.INSIDE not in words:
        install()
        if not (BINARY.exists() or SLIM.exists()):
            subprocess.run(["./release.sh", "slim"], cwd=CHECKOUT, check=True)
        return loopback.enter("tests.bench.peer", *words)
    loopback.bring_up()
    if not loopback.is_alone():
        print("there are network interfaces here besides loopback", file=sys.stderr)
        return 1
    load = os.getloadavg()[0]
    comparison = compare(BINARY if BINARY.exists() else SLIM, install())
    print(plain(comparison))
    if load > BUSY_LOAD:
        print(f"bench: the machine was busy (load {load:.1f}); these figures are no good", file=sys.stderr)
    if WRITE in words:
        save(comparison)
        readme.main()
    return 0 if comparison.is_whole else 1


def compare(binary: Path, installed: Installed) -> Comparison:
    """Every figure of both, taken in turn, so that both meet the same moods of the machine."""
    with contextlib.ExitStack() as stack:
        models = [stack.enter_context(contextlib.closing(Model(SCRIPT))) for _ in range(2)]
        homes = [stack.enter_context(_home()) for _ in range(2)]
        agents = (
            fermix(binary, homes[0], models[0].base_url),
            nanobot(installed, homes[1], models[1].base_url),
        )
        figures: list[Figure] = []
        for measurement in MEASUREMENTS:
            ours, theirs = (take(measurement, *each) for each in zip(agents, models, strict=True))
            figures += [
                Figure(name, unit, (our, their))
                for (name, unit), our, their in zip(measurement.figures, ours, theirs, strict=True)
            ]
    return Comparison(
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=machine(),
        agents=(f"{agents[0].name} {agents[0].version}", f"{agents[1].name} {agents[1].version}"),
        figures=tuple(figures),
    )


def take(measurement: Measurement, agent: Agent, model: Model) -> tuple[Value, ...]:
    """The values of one agent; from the first that cannot be had on, the reason."""
    print(f"bench: {agent.name}: {measurement.take.__name__}", file=sys.stderr, flush=True)
    values: list[Value] = []
    try:
        for measured in measurement.take(agent, model):
            values.append(Value(round(measured, 2)))
    except (NotMeasured, FermixError, OSError, subprocess.SubprocessError) as exc:
        values += [Value(reason=_reason(exc))] * (len(measurement.figures) - len(values))
    finally:
        end_all(agent)
    return tuple(values)


def _reason(exc: Exception) -> str:
    """For a footnote that everyone reads: no paths of this machine."""
    if isinstance(exc, subprocess.CalledProcessError):
        return f"its command ended with {exc.returncode}"
    if isinstance(exc, subprocess.TimeoutExpired):
        return f"its command took longer than {exc.timeout:g} s"
    return (exc.strerror if isinstance(exc, OSError) else None) or str(exc)


def machine() -> str:
    """The kind of machine: cores, memory, distribution."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    system = f"{release['NAME']} {release.get('VERSION_ID', '')}".replace('"', "").replace(" GNU/Linux", "")
    return f"{os.cpu_count()} cores, {-(-memory // 2**30)} GiB, {system.strip()}"


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="fx-peer-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
