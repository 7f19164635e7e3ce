"""The other agent's own environment below .cache/, as the lock files beside this file pin it."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PEERS = FOLDER.parent.parent.parent / ".cache/peer"
PACKAGE = "nanobot-ai"
LOCK = FOLDER / "requirements.lock"
VOCABULARY_LOCK = FOLDER / "vocabulary.lock"

INSTALL_TIMEOUT_S = 900

VOCABULARY = "tiktoken_ext/data/cl100k_base.tiktoken"
"""The vocabulary nanobot counts tokens with; it would be downloaded at the first count, which has no
network here. With it nanobot works as after its first day, not by its slower way for a failed download."""

VOCABULARY_KEY = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
"""Its name in tiktoken's cache: the SHA-1 of the address it is published at; tiktoken checks its SHA-256.
Source: tiktoken/load.py, `read_file_cached`."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An agent that can be started."""

    version: str
    program: Path
    vocabulary_cache: Path
    """What tiktoken takes as TIKTOKEN_CACHE_DIR."""


def install() -> Installed:
    """The environment of the pinned version, made when it is not there yet.

    Raises: CalledProcessError or TimeoutExpired when pip does.
    """
    digest = hashlib.sha256(LOCK.read_bytes() + VOCABULARY_LOCK.read_bytes() + sys.version.encode())
    folder = PEERS / digest.hexdigest()[:12]
    PEERS.mkdir(parents=True, exist_ok=True)
    with (PEERS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _fill(folder)
            (folder / "done").touch()
    return Installed(pinned_version(), folder / "env/bin/nanobot", folder / "vocabulary")


def pinned_version() -> str:
    """The version the lock file names."""
    found = re.search(rf"^{PACKAGE}==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert found is not None, f"{LOCK.name} does not pin {PACKAGE}"
    return found[1]


def _fill(folder: Path) -> None:
    print(f"bench: installing {PACKAGE} {pinned_version()}", file=sys.stderr, flush=True)
    python = folder / "env/bin/python"
    _run(sys.executable, "-m", "venv", str(folder / "env"))
    pip = (str(python), "-m", "pip", "install", "-qq", "--no-input", "--require-hashes")
    _run(*pip, "-r", str(LOCK))
    # Beside the environment, not in it: the package would also change how tiktoken finds vocabularies.
    _run(*pip, "--no-deps", "--target", str(folder / "unpacked"), "-r", str(VOCABULARY_LOCK))
    (folder / "vocabulary").mkdir()
    shutil.copy(folder / "unpacked" / VOCABULARY, folder / "vocabulary" / VOCABULARY_KEY)
    shutil.rmtree(folder / "unpacked")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S, stdin=subprocess.DEVNULL)
