"""How soon the daemon is there, what it costs while idle, and how soon a killed worker is replaced."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psutil

from tests.bench import BINARY, Figure

IDLE_S = 30.0
STARTS = 5


def measure(argv: tuple[str, ...] = (str(BINARY), "run")) -> Iterator[Figure]:
    """Starts, then one idle daemon, then kills of its worker; `argv` starts the daemon."""
    live, ready = [], []
    for number in range(1 + STARTS):
        with Running(argv) as daemon:
            times = daemon.until_answers("/health/live"), daemon.until_answers("/health/ready")
        if number:  # the first one may still unpack
            live.append(times[0])
            ready.append(times[1])
    yield Figure("fermix run to /health/live, warm", median(live), 0.8, "s")
    yield Figure("fermix run to /health/ready, warm", median(ready), 2.0, "s")
    with Running(argv) as daemon:
        daemon.until_answers("/health/ready")
        time.sleep(3.0)
        yield Figure("memory idle, PSS of worker + arbiter", daemon.memory_mb(), 75, "MB")
        before = daemon.cpu_s()
        time.sleep(IDLE_S)
        share = 100 * (daemon.cpu_s() - before) / IDLE_S
        yield Figure("CPU idle, share of a core", share, 0.3, "%")
        yield Figure(
            "worker killed to ready again", median(daemon.replace_worker() for _ in range(5)), 2.0, "s"
        )


class Running:
    """A daemon in a home of its own while the block runs."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv
        self._root = Path(tempfile.mkdtemp(prefix="fx-"))
        self._home = self._root / "home"

    def __enter__(self) -> Running:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._home.mkdir(mode=0o700)
        config = self._home / "config.toml"
        config.write_text(f"[http]\nport = {self._port}\n")
        config.chmod(0o600)
        environment = {
            "HOME": str(self._root),
            "FERMIX_HOME": str(self._home),
            "PATH": os.environ["PATH"],
            "FERMIX_RUNTIME_DIR": str(BINARY.parent / "unpacked"),
        }
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            self._argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        shutil.rmtree(self._root, ignore_errors=True)

    def until_answers(self, path: str) -> float:
        """Seconds from exec to the first 200."""
        while time.monotonic() - self._started < 60:
            if self._answers(path):
                return time.monotonic() - self._started
            time.sleep(0.005)
        raise AssertionError(f"{path} never answered 200")

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10):
                return True
        except OSError:  # refused, reset, or an answer that is not 200
            return False

    def processes(self) -> list[psutil.Process]:
        arbiter = psutil.Process(self._process.pid)
        return [arbiter, *arbiter.children(recursive=True)]

    def memory_mb(self) -> float:
        """PSS; where the kernel does not let us look (they are not dumpable), RSS, which is more."""
        total = 0
        for process in self.processes():
            try:
                text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                total += int(re.search(r"^Pss:\s+(\d+) kB", text, re.M)[1]) * 1024
            except PermissionError:
                total += process.memory_info().rss
        return total / 1e6

    def cpu_s(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self.processes())

    def replace_worker(self) -> float:
        worker = self.processes()[1]
        os.kill(worker.pid, signal.SIGKILL)
        self._started = time.monotonic()
        worker.wait(timeout=10)
        return self.until_answers("/health/ready")
