"""A daemon with a stub for its runtime, run as a process of its own: `python -m tests.daemon.stub_daemon`.

Arguments: the mode, then any of `refuse`, `newer`, `crash`, `die`, `slow`, `endless`, `stubborn`,
`slowstop`. Its control socket takes one line per connection and answers one.
"""

from gevent import monkey

monkey.patch_all()

import ctypes
import os
import re
import signal
import sys
import time
from pathlib import Path

from gevent import socket
from gevent.event import Event

from fermix import native
from fermix.daemon.launch import Placement
from fermix.daemon.mode import Mode
from fermix.daemon.reload import Outcome, Reload
from fermix.daemon.run import serve
from fermix.errors import NotReady, OwnerError, SchemaNewer
from fermix.paths import Home
from fermix.tasks import TaskGroup, sleep
from fermix.telemetry.lines import set_redaction
from fermix.web.health import DaemonState, HealthReport

FLAGS = sys.argv[2:]


def block(seconds: float) -> None:
    """Keep the GIL for so long; a signal wakes each single sleep."""
    sleeper = ctypes.PyDLL(None).usleep
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        sleeper(int(left_s * 1e6))


def deep(calls: int) -> None:
    """Frames that come and go."""
    if calls:
        deep(calls - 1)


class StubRuntime:
    """Answers `ping`, blocks its hub or works on request, and writes down what is asked of it."""

    def __init__(self, placement: Placement) -> None:
        self.home = placement.home
        self.control = placement.control
        self.tasks = TaskGroup("stub")
        self.started_s = time.monotonic()
        self.failed = Event()
        self.running = 0
        self.reloading = Reload(
            placement.live, placement.home, placement.environment, steps=placement.steps
        )

    def start(self) -> None:
        set_redaction(lambda text: text.replace("hunter2", "***"))
        if "refuse" in FLAGS:
            raise OwnerError("The stub cannot start.", hint="Repair the stub.")
        if "newer" in FLAGS:
            raise SchemaNewer("The stub's database is of a later fermix.")
        if "crash" in FLAGS:
            raise ValueError("a bug in the stub")
        if "die" in FLAGS:
            os.kill(os.getpid(), signal.SIGKILL)
        if "slow" in FLAGS:
            sleep(3.0)
        self.tasks.start(self._accept, name="accept")

    def wait(self, timeout_s: float) -> bool:
        if self.failed.wait(timeout_s):
            raise ValueError("the tree gave up")
        return False

    def drain(self, timeout_s: float) -> None:
        self._note("drain")
        until_s = time.monotonic() + timeout_s
        while ("endless" in FLAGS or self.running) and time.monotonic() < until_s:
            sleep(0.02)

    def stop(self) -> None:
        self._note("stop")
        self.tasks.stop(1.0)
        if "slowstop" in FLAGS:
            sleep(1.0)
            self._note("stopped")

    def reload(self) -> Outcome:
        self._note("reload")
        if "stubborn" in FLAGS:
            raise OwnerError("The stub wants none of it.")
        return self.reloading.run()

    def ripcord(self) -> None:
        self._note("ripcord")

    def health(self) -> HealthReport:
        return HealthReport(status=DaemonState.READY, version="stub", uptime_ms=1, pid=os.getpid())

    def desk(self) -> None:
        raise NotReady("The stub keeps no turns.")

    def tokens(self) -> None:
        raise NotReady("The stub lets nobody in.")

    def is_of_a_turn(self, peer: tuple[str, int], own: tuple[str, int]) -> bool:
        return False

    def _accept(self) -> None:
        while True:
            client, _ = self.control.accept()
            self.tasks.start(lambda client=client: self._answer(client), name="client")

    def _answer(self, client: socket.socket) -> None:
        with client:
            word, _, rest = client.recv(200).decode(errors="replace").strip().partition(" ")
            if word == "ping":
                client.sendall(f"{os.getpid()}\n".encode())
            elif word == "work":
                self.running += 1
                sleep(float(rest))
                self.running -= 1
                client.sendall(b"done\n")
            elif word == "block":  # keeps the GIL: PyDLL does not let go of it
                block(float(rest))
            elif word == "spin":
                until_s = time.monotonic() + float(rest)
                while time.monotonic() < until_s:
                    deep(20)
            elif word == "regex":  # C of CPython's own that never looks at signals or other threads
                re.match(r"(a+)+$", "a" * 60 + "b")
            elif "only_private" in rest:
                self._note("asked")
            elif word == "command":
                null = os.open(os.devnull, os.O_RDWR)
                spawned = native.spawn(
                    ["sleep", "60"], cwd="/", env=os.environ, stdin=null, stdout=null, stderr=null
                )
                self.spawned = spawned  # its monitor ends the command when this is gone
                client.sendall(f"{spawned.leader_pid}\n".encode())
            elif word == "segfault":
                ctypes.string_at(0)
            elif word == "fail":
                self.failed.set()

    def _note(self, word: str) -> None:
        with (self.home.root / "diary").open("a") as diary:
            diary.write(f"{word}\n")


if __name__ == "__main__":
    sys.exit(
        serve(
            Home(Path(os.environ["FERMIX_HOME"])), Mode(sys.argv[1]), os.environ, make_runtime=StubRuntime
        )
    )
