"""Patches before anything else is imported, as the daemon does; gives tests the `fermix` command."""

from gevent import monkey

monkey.patch_all()

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--binary dist/fermix` also runs the tests that need the frozen executable."""
    parser.addoption("--binary", type=Path, default=None, help="frozen fermix to test beside the source")


def pytest_report_header(config: pytest.Config) -> str:
    """Which executable the run is about."""
    return f"fermix binary: {config.getoption('--binary') or 'none (binary tests left out, see --binary)'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of the binary when none was named, and tests with real keys always."""
    unwanted = {"live"} if config.getoption("--binary") else {"live", "binary"}
    left_out = [item for item in items if any(mark.name in unwanted for mark in item.iter_markers())]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass
class Fermix:
    """The fermix command with a home of its own; call it with a command line."""

    argv: tuple[str, ...]
    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """Its FERMIX_HOME."""
        return self.root / "home"

    def __call__(
        self,
        *words: str,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Finished:
        """Run one command to its end."""
        done = subprocess.run(
            [*self.argv, *words],
            input=stdin,
            env={**self.environment, **(environment or {})},
            cwd=self.root,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a command that stays; the caller ends it, the daemon of this home is ended for it."""
        return subprocess.Popen(
            [*self.argv, *words],
            env={**self.environment, **(environment or {})},
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def end_daemon(self) -> None:
        """End the daemon of this home, if one runs: SIGTERM, after 10 s SIGKILL."""
        try:
            pid = int((self.home / "fermix.pid").read_text().split()[0])
            is_ours = f"FERMIX_HOME={self.home}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except (OSError, ValueError, IndexError):
            return
        for number in (signal.SIGTERM, signal.SIGKILL) if is_ours else ():
            os.kill(pid, number)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                if not Path(f"/proc/{pid}").exists():
                    return
                time.sleep(0.05)


@contextmanager
def installed(argv: tuple[str, ...], **more: str) -> Iterator[Fermix]:
    """A command with a new home and a clean environment, and nothing of it left afterwards."""
    root = Path(tempfile.mkdtemp(prefix="fx-"))  # short: a socket's path has 107 bytes
    environment = {
        "HOME": str(root),
        "FERMIX_HOME": str(root / "home"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    command = Fermix(argv, root, {**environment, **more})
    try:
        yield command
    finally:
        command.end_daemon()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def binary(request: pytest.FixtureRequest) -> Iterator[Fermix]:
    """The frozen executable; a test that asks for it is marked `binary`."""
    path = request.config.getoption("--binary").resolve()
    # Unpacked once for all tests, out of reach of the developer's own cache.
    with installed((str(path),), FERMIX_RUNTIME_DIR=str(CHECKOUT / "dist/unpacked")) as command:
        yield command


@pytest.fixture
def source() -> Iterator[Fermix]:
    """The command as it runs from a checkout."""
    with installed((sys.executable, "-m", "fermix"), PYTHONPATH=str(CHECKOUT)) as command:
        yield command


@pytest.fixture(params=["source", pytest.param("binary", marks=pytest.mark.binary)])
def fermix(request: pytest.FixtureRequest) -> Fermix:
    """The command from source and as the frozen binary: every test runs with both."""
    command: Fermix = request.getfixturevalue(request.param)
    return command
