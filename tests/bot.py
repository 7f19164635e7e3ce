"""A whole fermix to talk to: a scripted model, a daemon in its own processes, and a person's client."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from fermix.errors import FermixError
from fermix.ids import new_id
from fermix.ipc.client import Connection, Event, Result, open_connection

CHECKOUT = Path(__file__).resolve().parent.parent
SOURCE = (sys.executable, "-m", "fermix.testing.daemon")
"""The daemon from source, with its test seam."""


def wait_for(what: str, is_so: Callable[[], bool], timeout_s: float = 20.0) -> float:
    """Seconds until `is_so`; fails loudly after `timeout_s`."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > timeout_s:
            raise AssertionError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.01)
    return time.monotonic() - began


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


class Served(Protocol):
    """A model server, of which a bot only wants the address."""

    @property
    def base_url(self) -> str: ...


class Model:
    """The scripted model server in a process of its own."""

    def __init__(self, script: object = None, *words: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fx-model-"))
        path = self.folder / "script.json"
        path.write_bytes(msgspec.json.encode(script if script is not None else {}))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fermix.testing.model_server", "--script", str(path), *words],
            stdout=subprocess.PIPE,
            cwd=CHECKOUT,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split()[-1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def requests(self) -> list[dict[str, Any]]:
        """What was asked so far, oldest first."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_requests", timeout=10) as answer:
            return list(msgspec.json.decode(answer.read())["requests"])

    def script(self, script: object) -> None:
        """Answer by this script from now on."""
        body = msgspec.json.encode(script)
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/_script", data=body, method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()
        shutil.rmtree(self.folder)


@dataclass
class Reply:
    """Everything one message brought back."""

    result: dict[str, Any]
    events: list[Event] = field(default_factory=list)

    @property
    def text(self) -> str:
        return str(self.result["text"])

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]


class Bot:
    """One home and its daemon; every process it starts is ended by `close`."""

    def __init__(
        self, model: Served, *, argv: tuple[str, ...] = SOURCE, config: str = "", full: bool = False
    ) -> None:
        """`argv`: the daemon to run; `config`: more of config.toml; `full`: with HTTP, on a free port."""
        self.root = Path(tempfile.mkdtemp(prefix="fx-"))
        self.home = self.root / "home"
        self.home.mkdir(mode=0o700)
        self.argv = argv
        self.full = full
        self._processes: list[subprocess.Popen[bytes]] = []
        text = (
            f'[provider]\nname = "scripted"\n[providers.scripted]\nbase_url = "{model.base_url}"\n'
            f'model = "scripted"\n[http]\nport = 0\n{config}'
        )
        if "[runtime]" not in config:
            text += "\n[runtime]\ndrain_s = 1.0\n"
        (self.home / "config.toml").write_text(text)
        (self.home / "config.toml").chmod(0o600)

    def environment(self) -> dict[str, str]:
        """What every process of this bot is started with."""
        return {
            "HOME": str(self.root),
            "FERMIX_HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(CHECKOUT),
            "FERMIX_RUNTIME_DIR": str(CHECKOUT / "dist/unpacked"),
        }

    def start(self, *words: str, wait: bool = True) -> float:
        """Start the daemon; seconds until it is ready."""
        mode = () if self.full else ("--private",)
        began = time.monotonic()
        with (self.root / "daemon.out").open("ab") as out:
            process = subprocess.Popen(
                [*self.argv, *mode, *words],
                env=self.environment(),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self._processes.append(process)
        if wait:
            wait_for("the daemon to be ready", self.is_ready)
        return time.monotonic() - began

    def is_ready(self) -> bool:
        """Whether it takes messages now."""
        try:
            return self.status()["state"] == "ready"
        except FermixError:
            return False

    def status(self) -> dict[str, Any]:
        with self.connect() as connection:
            return connection.call("status", {}, 5.0)

    def connect(self) -> Connection:
        return open_connection(self.home / "daemon.sock", timeout_s=5.0)

    @property
    def address(self) -> str:
        """Where HTTP is served, as `127.0.0.1:4030`; for a full daemon."""
        return str(self.status()["http"])

    @property
    def token(self) -> str:
        """What lets this machine's programs in over HTTP."""
        return (self.home / "api-token").read_text().strip()

    @property
    def arbiter(self) -> int:
        return int((self.home / "fermix.pid").read_text())

    @property
    def worker(self) -> int:
        children = Path(f"/proc/{self.arbiter}/task/{self.arbiter}/children").read_text().split()
        return next(int(pid) for pid in children if "monitor" not in Path(f"/proc/{pid}/comm").read_text())

    def kill(self, *pids: int) -> None:
        """SIGKILL, and wait until they are gone."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            if process.pid in pids:
                process.wait(10)
        wait_for("the killed processes to be gone", lambda: not any(map(is_alive, pids)))

    def say(self, text: str, *, session: str = "main", client_id: str | None = None) -> Reply:
        """Send a message, read to its result, acknowledge."""
        with self.connect() as connection:
            reply = self.read(connection, text, session=session, client_id=client_id)
            connection.call("ack", {"turn_id": reply.result["turn_id"]}, 10.0)
        return reply

    def read(
        self, connection: Connection, text: str, *, session: str = "main", client_id: str | None = None
    ) -> Reply:
        """As `say`, on a given connection and without the acknowledgement."""
        params = {"text": text, "session": session, "client_id": client_id or fresh_id()}
        return collect(connection.stream("message", params, 60.0))

    def resume(self, turn_id: str, after_seq: int) -> Reply:
        """A turn's events after one already seen, to its result."""
        with self.connect() as connection:
            return collect(connection.stream("resume", {"turn_id": turn_id, "after_seq": after_seq}, 60.0))

    def log_text(self) -> str:
        return (self.home / "logs/fermix.log").read_text(errors="replace")

    def close(self) -> None:
        """End everything this bot started."""
        self.close_daemons()
        shutil.rmtree(self.root, ignore_errors=True)

    def close_daemons(self) -> None:
        """End every daemon this bot started."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    self.kill(process.pid)


def fresh_id() -> str:
    """A client id."""
    return new_id(time.time_ns() // 1_000_000)


def collect(stream: Any) -> Reply:
    """Read a stream to its result."""
    events: list[Event] = []
    for answer in stream:
        if isinstance(answer, Result):
            return Reply(answer.data, events)
        events.append(answer)
    raise AssertionError("the stream ended without a result")


@contextlib.contextmanager
def running(
    script: object, *, argv: tuple[str, ...] = SOURCE, config: str = "", full: bool = False
) -> Iterator[Bot]:
    """A started bot with this model script, ended afterwards."""
    model = Model(script)
    bot = Bot(model, argv=argv, config=config, full=full)
    try:
        bot.start()
        yield bot
    finally:
        bot.close()
        model.close()
