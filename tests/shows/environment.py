"""Python environments below .cache/ for programs that only shows use."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / ".cache/shows"
INSTALL_TIMEOUT_S = 900


def environment(name: str, packages: Sequence[str]) -> Path:
    """The folder of an environment with these pinned packages, made when it is not there yet.

    Raises: CalledProcessError or TimeoutExpired when pip does.
    """
    digest = hashlib.sha256("\n".join([*packages, sys.version]).encode()).hexdigest()[:12]
    folder = FOLDER / f"{name}-{digest}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(folder))
            _run(str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *packages)
            (folder / "done").touch()
    return folder


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S, stdin=subprocess.DEVNULL)
