"""The two agents as what the measurements need to know of them: words to start, places to ask."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from fermix.ipc.client import Result, open_connection
from tests.bench.peer.install import PACKAGE, Installed
from tests.bench.peer.websocket import WebSocket
from tests.bot import fresh_id

# In a network namespace of our own every port is free.
FERMIX_PORT = 4030
NANOBOT_PORT, NANOBOT_SOCKET_PORT = 18790, 8765

COMMAND_TIMEOUT_S = 60.0

Talk = Callable[[str], tuple[int, int]]
"""One turn in the same conversation; monotonic nanoseconds when it was sent and when it had ended."""


@dataclass(frozen=True, slots=True)
class Agent:
    """How one agent is started, asked and ended; every process of it has `HOME` in its environment."""

    name: str
    version: str
    home: Path
    environment: dict[str, str]
    version_words: tuple[str, ...]
    ask_words: tuple[str, ...]
    """Ask one thing from a shell."""
    daemon_words: tuple[str, ...]
    """Serve in the foreground until SIGTERM."""
    health_port: int
    health_path: str
    """GET answers 200 when messages are taken, and not before."""
    talk: Callable[[], AbstractContextManager[Talk]]
    """A client of the running daemon, connected before the first turn."""
    leave: Callable[[], None]
    """End what a one-shot without a daemon left running."""


def fermix(binary: Path, home: Path, model_url: str) -> Agent:
    """The frozen binary; its daemon is talked to over the control socket, as its own CLI does."""
    root = home / ".fermix"
    root.mkdir(mode=0o700)
    config = root / "config.toml"
    config.write_text(
        f'[provider]\nname = "scripted"\n[providers.scripted]\nbase_url = "{model_url}"\n'
        f'model = "scripted"\n[http]\nport = {FERMIX_PORT}\n'
    )
    config.chmod(0o600)
    environment = {**_environment(home), "FERMIX_HOME": str(root)}

    @contextlib.contextmanager
    def talk() -> Iterator[Talk]:
        with open_connection(root / "daemon.sock", timeout_s=5.0) as connection:

            def turn(text: str) -> tuple[int, int]:
                params = {"text": text, "session": "bench", "client_id": fresh_id()}
                sent = time.monotonic_ns()
                *_, last = connection.stream("message", params, COMMAND_TIMEOUT_S)
                ended = time.monotonic_ns()
                assert isinstance(last, Result)
                connection.call("ack", {"turn_id": last.data["turn_id"]}, COMMAND_TIMEOUT_S)
                return sent, ended

            yield turn

    def leave() -> None:
        stop = [str(binary), "stop"]
        subprocess.run(stop, env=environment, check=False, capture_output=True, timeout=COMMAND_TIMEOUT_S)

    return Agent(
        name="fermix",
        version=_version_of(binary, environment),
        home=home,
        environment=environment,
        version_words=(str(binary), "version"),
        ask_words=(str(binary), "ask", "ping"),
        daemon_words=(str(binary), "run"),
        health_port=FERMIX_PORT,
        health_path="/health/ready",
        talk=talk,
        leave=leave,
    )


def nanobot(installed: Installed, home: Path, model_url: str) -> Agent:
    """The gateway with its WebSocket channel, which is on by default and serves its WebUI and terminal UI.

    Of its local interfaces this is the one of the long-running daemon: `nanobot serve` needs packages
    beyond the default installation, and `nanobot agent` is a process of its own per conversation.
    Settings are its defaults but for the model, the ports, and no token for the socket. It has no
    telemetry, and looks for updates only when its WebUI asks (its source, `webui/version_check.py`).
    """
    program = str(installed.program)
    config = {
        "agents": {"defaults": {"provider": "custom", "model": "scripted"}},
        "providers": {"custom": {"apiBase": model_url, "apiKey": "none"}},
        "gateway": {"port": NANOBOT_PORT},
        "channels": {"websocket": {"port": NANOBOT_SOCKET_PORT, "websocketRequiresToken": False}},
    }
    (home / ".nanobot").mkdir()
    (home / ".nanobot/config.json").write_text(json.dumps(config))

    @contextlib.contextmanager
    def talk() -> Iterator[Talk]:
        with contextlib.closing(WebSocket(NANOBOT_SOCKET_PORT, path="/?client_id=bench")) as link:

            def turn(text: str) -> tuple[int, int]:
                sent = time.monotonic_ns()
                link.send({"content": text})
                while link.receive()["event"] != "turn_end":
                    pass
                return sent, time.monotonic_ns()

            yield turn

    return Agent(
        name=PACKAGE,
        version=installed.version,
        home=home,
        environment={**_environment(home), "TIKTOKEN_CACHE_DIR": str(installed.vocabulary_cache)},
        version_words=(program, "--version"),
        ask_words=(program, "agent", "-m", "ping"),
        daemon_words=(program, "gateway", "--foreground"),
        health_port=NANOBOT_PORT,
        health_path="/health",
        talk=talk,
        leave=lambda: None,
    )


def _version_of(binary: Path, environment: dict[str, str]) -> str:
    """The binary's own word: it may be older than the checkout it stands in."""
    command = [str(binary), "version"]
    said = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S
    )
    return said.stdout.split()[-1]


def _environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
