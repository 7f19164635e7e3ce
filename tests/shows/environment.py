"""Python and Node environments below .cache/ for programs that only shows use."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / ".cache/shows"
INSTALL_TIMEOUT_S = 900


def environment(name: str, packages: Sequence[str]) -> Path:
    """The folder of an environment with these pinned packages, made when it is not there yet.

    Raises: CalledProcessError or TimeoutExpired when pip does.
    """

    def make(folder: Path) -> None:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *packages)

    return _made(name, [*packages, sys.version], make)


def node_environment(name: str, packages: Sequence[str]) -> Path:
    """As `environment`, of pinned npm packages; their commands stand in `node_modules/.bin`.

    Raises: CalledProcessError or TimeoutExpired when npm does, FileNotFoundError without npm.
    """

    def make(folder: Path) -> None:
        folder.mkdir()
        _run(
            "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts",
            "--prefix", str(folder), *packages,
        )  # fmt: skip

    return _made(name, packages, make)


def _made(name: str, contents: Sequence[str], make: Callable[[Path], None]) -> Path:
    digest = hashlib.sha256("\n".join(contents).encode()).hexdigest()[:12]
    folder = FOLDER / f"{name}-{digest}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            (folder / "done").touch()
    return folder


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S, stdin=subprocess.DEVNULL)
