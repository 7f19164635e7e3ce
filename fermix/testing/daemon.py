"""The daemon with a handle on its moments: it freezes at a named event, and has tools that test it.

    python -m fermix.testing.daemon [--private] [--stop-at EVENT --marks DIR [--stops N]]

At EVENT (`inbox.received`, `step.model_reply`, `tool.started`, `outbox.sending`, …) the worker
leaves a mark in DIR and stops itself with SIGSTOP, so that a test can kill what it likes in
exactly that state. It does so N times over all its lives, then runs on.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import argparse
import ctypes
import os
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from fermix.capabilities.context import ToolContext
from fermix.capabilities.tool import Tool, tool
from fermix.daemon.app import Runtime
from fermix.daemon.launch import Placement
from fermix.daemon.mode import Mode
from fermix.daemon.run import serve
from fermix.paths import Home
from fermix.tools import TOOLS
from fermix.tools.time import current_time
from fermix.trust import Policy


@tool(policy=Policy.EXEC)
def note_run(ctx: ToolContext, path: str, word: str) -> str:
    """Append a word to a file at once, so that a test can count how often a call ran.

    path: The file.
    word: What to append.
    """
    with Path(path).open("a") as file:
        file.write(f"{word}\n")
    return f"noted {word}"


@tool(policy=Policy.EXEC)
def block_hub(ctx: ToolContext, seconds: int, keeps_gil: bool = False) -> str:
    """Block the whole worker in C, as a faulty extension would.

    seconds: How long.
    keeps_gil: Whether not even other threads may run meanwhile.
    """
    library = ctypes.PyDLL(None) if keeps_gil else ctypes.CDLL(None)
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:  # a signal wakes each single sleep
        library.usleep(int(left_s * 1e6))
    return "woke up"


def filler(number: int) -> Tool:
    """A tool nobody calls, to fill a request up to the size that real use has."""
    return replace(current_time, name=f"filler_{number}", description="Stands for a tool. " * 8)


class Freezer:
    """An event sink that stops the process at one event."""

    def __init__(self, event: str, marks: Path, stops: int) -> None:
        self._event = event
        self._marks = marks
        self._stops = stops

    def __call__(self, name: str, fields: dict[str, object]) -> None:
        if name != self._event:
            return
        count = len(list(self._marks.iterdir()))
        if count < self._stops:
            (self._marks / f"{count}-{name}").write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)


def make_runtime(freezer: Freezer | None, tool_count: int, placement: Placement) -> Runtime:
    """The real runtime with our sink and tools."""
    own = (*TOOLS, note_run, block_hub)
    tools = (*own, *(filler(number) for number in range(tool_count - len(own))))
    return Runtime(placement, sink=freezer, tools=tools)


def main(words: list[str]) -> int:
    """The exit status of the daemon."""
    parser = argparse.ArgumentParser(prog="fermix.testing.daemon", description=__doc__)
    parser.add_argument("--private", action="store_true")
    parser.add_argument("--stop-at")
    parser.add_argument("--marks", type=Path)
    parser.add_argument("--stops", type=int, default=1)
    parser.add_argument("--tools", type=int, default=0, help="tools to offer at the least")
    chosen = parser.parse_args(words)
    freezer = Freezer(chosen.stop_at, chosen.marks, chosen.stops) if chosen.stop_at else None
    mode = Mode.PRIVATE if chosen.private else Mode.FULL
    return serve(
        Home.find(os.environ), mode, os.environ, make_runtime=partial(make_runtime, freezer, chosen.tools)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
