"""The processes of an agent: found by the HOME they were given, weighed together, ended by pid."""

from __future__ import annotations

import contextlib
import http.client
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.peer.agents import COMMAND_TIMEOUT_S, Agent

_POLL_S = 0.002
_SETTLING_S, _STEADY_SHARE = 60.0, 0.01


class NotMeasured(Exception):
    """A figure that cannot be had; the text is its footnote."""


@contextlib.contextmanager
def running(agent: Agent) -> Iterator[float]:
    """The agent's daemon; seconds from exec until its health says that it takes messages."""
    with (agent.home / "daemon.out").open("ab") as out:
        began = time.monotonic()
        daemon = subprocess.Popen(
            agent.daemon_words,
            env=agent.environment,
            cwd=agent.home,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        _wait("its health did not answer 200", lambda: _is_healthy(agent) or _has_ended(daemon))
        yield time.monotonic() - began
        daemon.terminate()
        daemon.wait(COMMAND_TIMEOUT_S)
    finally:
        end_all(agent)
        daemon.wait(COMMAND_TIMEOUT_S)


def answer_s(agent: Agent, answer: bytes) -> float:
    """Seconds from exec until `answer` stands in what a one-shot printed."""
    began = time.monotonic()
    process = subprocess.Popen(
        agent.ask_words,
        env=agent.environment,
        cwd=agent.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    printed = b""
    try:
        while answer not in printed:
            piece = _read(process.stdout.fileno(), began + COMMAND_TIMEOUT_S)
            if not piece:
                raise NotMeasured(f"its one-shot ended with {process.wait(COMMAND_TIMEOUT_S)}, no answer")
            printed += piece
        took_s = time.monotonic() - began
        while _read(process.stdout.fileno(), began + COMMAND_TIMEOUT_S):
            pass
        process.wait(COMMAND_TIMEOUT_S)
    finally:
        process.stdout.close()
        if process.poll() is None:
            process.kill()
            process.wait(COMMAND_TIMEOUT_S)
    return took_s


def settled_bytes(agent: Agent) -> int:
    """Memory of all its processes, shared pages by share, once it changes by less than 1 % in 3 s."""
    deadline = time.monotonic() + _SETTLING_S
    last, steady = 0, 0
    while steady < 3:
        if time.monotonic() > deadline:
            raise NotMeasured(f"its memory did not settle within {_SETTLING_S:g} s")
        time.sleep(1.0)
        now = sum(_pss_bytes(pid) for pid in pids_of(agent))
        steady = steady + 1 if abs(now - last) <= now * _STEADY_SHARE else 0
        last = now
    return last


def pids_of(agent: Agent) -> list[int]:
    """Every living process that has the agent's HOME, whoever its parent is by now."""
    marker = f"HOME={agent.home}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it ended, or is someone else's
                if marker in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def end_all(agent: Agent) -> None:
    """SIGKILL what is left of the agent, and wait until it is gone."""

    def is_gone() -> bool:
        pids = pids_of(agent)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    _wait("its processes could not be ended", is_gone)


def wait_until_gone(agent: Agent) -> None:
    """Wait until no process of the agent is left."""
    _wait("its processes did not end", lambda: not pids_of(agent))


def _is_healthy(agent: Agent) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", agent.health_port, timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", agent.health_path)
        return connection.getresponse().status == 200
    return False


def _has_ended(daemon: subprocess.Popen[bytes]) -> bool:
    if daemon.poll() is not None:
        raise NotMeasured(f"its daemon ended with {daemon.returncode} while it started")
    return False


def _read(descriptor: int, deadline: float) -> bytes:
    """What a one-shot has printed by now; nothing at its end."""
    if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        raise NotMeasured(f"its one-shot printed no answer within {COMMAND_TIMEOUT_S:g} s")
    return os.read(descriptor, 65_536)


def _pss_bytes(pid: int) -> int:
    """Source: proc(5), smaps_rollup: "Pss: N kB", memory with each shared page split among its users."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))


def _wait(failure: str, is_so: Callable[[], bool], timeout_s: float = COMMAND_TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise NotMeasured(f"{failure} within {timeout_s:g} s")
        time.sleep(_POLL_S)
