"""Sizes of the binary and how fast it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import BINARY, SLIM, Figure, median_ms


def measure() -> Iterator[Figure]:
    """Sizes, then a command that needs nothing, warm and with an empty cache."""
    yield Figure("slim binary", SLIM.stat().st_size / 1e6, 35, "MB")
    yield Figure("full binary", BINARY.stat().st_size / 1e6, 170, "MB")
    home = Path(tempfile.mkdtemp(prefix="fx-"))
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    command = [str(BINARY), "version"]
    try:
        warm = median_ms(lambda: subprocess.run(command, env=environment, check=True, capture_output=True))
        yield Figure("fermix version, warm", warm, 40, "ms")

        def cold() -> None:
            shutil.rmtree(home / ".cache")
            subprocess.run(command, env=environment, check=True, capture_output=True)

        # No target in the table; a newcomer's first start should still not feel like a wait.
        yield Figure("fermix version, first start ever", median_ms(cold, runs=5, warm_up=0), 1000, "ms")
    finally:
        shutil.rmtree(home, ignore_errors=True)
