"""Daemons with a stub runtime, each a real arbiter and worker in a home of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

QUICK = {
    "http": {"port": 0},
    "runtime": {"drain_s": 3.0, "stop_s": 1.0, "hub_blocked_log_ms": 200},
}


class StubDaemon:
    """One home and the daemon that serves it."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="fx-"))  # short: a socket's path has 107 bytes
        self.home = self.root
        self.processes: list[subprocess.Popen[str]] = []
        self.pids: set[int] = set()
        self.environment: dict[str, str] = {}
        self.configure()

    def configure(self, **changes: dict[str, object]) -> None:
        """Write config.toml: short limits, and what the test changes in them."""
        lines: list[str] = []
        for section in QUICK.keys() | changes.keys():
            lines.append(f"[{section}]")
            values = {**QUICK.get(section, {}), **changes.get(section, {})}
            lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        path = self.home / "config.toml"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)

    def spawn(self, *flags: str, mode: str = "full") -> subprocess.Popen[str]:
        """Start a daemon and wait for nothing."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.daemon.stub_daemon", mode, *flags],
            cwd=CHECKOUT,
            env={**os.environ, **self.environment, "FERMIX_HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def start(self, *flags: str, mode: str = "full") -> subprocess.Popen[str]:
        """Start a daemon; returns when its worker is ready."""
        process = self.spawn(*flags, mode=mode)
        until(lambda: process.poll() is not None or self.ping() is not None)
        if process.poll() is not None:
            raise AssertionError(f"the daemon ended: {process.communicate()[0]}")
        return process

    @property
    def arbiter(self) -> int:
        pid = int((self.home / "fermix.pid").read_text())
        self.pids.add(pid)
        return pid

    def ask(self, words: str, timeout_s: float = 5.0) -> str | None:
        """The stub's one-line answer; None when nobody listens, empty when it hung up."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(timeout_s)
            try:
                link.connect(str(self.home / "daemon.sock"))
                link.sendall(words.encode())
                return link.recv(200).decode().strip()
            except (FileNotFoundError, ConnectionError):
                return None

    def ping(self) -> int | None:
        """The worker's pid, once it answers."""
        with contextlib.suppress(TimeoutError):
            answer = self.ask("ping")
            if answer:
                self.pids.add(int(answer))
                return int(answer)
        return None

    def post(self, words: str) -> None:
        """Ask for something and wait for no answer."""
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(self.home / "daemon.sock"))
        link.sendall(words.encode())
        link.close()

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, object]]:
        """Status and JSON of an HTTP answer."""
        request = urllib.request.Request(self.url() + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def url(self) -> str:
        """Where it serves HTTP, as its log says."""
        return re.findall(r"http://[\d.:\[\]]+:\d+", self.log())[-1]

    def log(self) -> str:
        """The present file; empty in the moment in which a rotation has put it aside."""
        try:
            return (self.home / "logs/fermix.log").read_text()
        except FileNotFoundError:
            return ""

    def diary(self) -> list[str]:
        """What the stub was told to do."""
        path = self.home / "diary"
        return path.read_text().split() if path.exists() else []

    def end(self) -> None:
        """Kill whatever of it still runs."""
        for process in self.processes:
            with contextlib.suppress(psutil.Error):
                self.pids |= {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
            process.kill()
            process.communicate(timeout=10)
        for pid in self.pids:
            if is_ours(pid, self.home):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)


def is_ours(pid: int, home: Path) -> bool:
    try:
        return f"FERMIX_HOME={home}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(condition: Callable[[], object], timeout_s: float = 15.0) -> float:
    """Wait for it; how long it took, in seconds."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout_s, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - started


@pytest.fixture
def daemon() -> Iterator[StubDaemon]:
    stub = StubDaemon()
    yield stub
    stub.end()


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., float]:
    return until


@pytest.fixture(name="is_alive")
def is_alive_fixture() -> Callable[[int], bool]:
    return is_alive
