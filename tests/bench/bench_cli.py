"""How long a person waits for the thin client: a daemon runs, the binary asks it something."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import BINARY, Figure, median_ms


def measure(argv: tuple[str, ...] = (str(BINARY),)) -> Iterator[Figure]:
    """The verbs people and scripts repeat, warm; `argv` starts the client."""
    home = Path(tempfile.mkdtemp(prefix="fx-"))
    environment = {"HOME": str(home), "FERMIX_HOME": str(home / "home"), "PATH": os.environ["PATH"]}

    def run(*words: str) -> None:
        subprocess.run([*argv, *words], env=environment, cwd=home, check=True, capture_output=True)

    try:
        run("config", "set", "http.port", "0")
        run("start")
        yield Figure("fermix version, warm (client)", median_ms(lambda: run("version")), 40, "ms")
        yield Figure("fermix status, warm", median_ms(lambda: run("status")), 80, "ms")
        # No target in the table; what stands between Enter and the daemon should not be felt either.
        yield Figure("fermix sessions list, warm", median_ms(lambda: run("sessions", "list")), 150, "ms")
        run("stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
