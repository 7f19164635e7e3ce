"""A command that does not want to end: `nasty.py KIND MARK`; gives up by itself after 60 s.

stubborn  ignores SIGTERM, double-forks with setsid, once without environment, and prints 300 kB a second
flooding  the same with nothing but output in between
walking   each generation forks the next with setsid and exits, so that a kill always comes late
wide      many processes that ignore SIGTERM, each in a session of its own
"""

from __future__ import annotations

import os
import signal
import sys
import time

LIFE_S = 60.0


def stay(mark: str, *, has_environment: bool = True) -> None:
    """Become a sleeper with the mark in its command line."""
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    environment = dict(os.environ) if has_environment else {}
    os.execve(sys.executable, [sys.executable, "-S", "-E", "-c", code, mark], environment)


def detach(mark: str, *, has_environment: bool) -> None:
    """Leave a sleeper without parent, in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            stay(mark, has_environment=has_environment)
        os._exit(0)
    os.wait()


def stubborn(mark: str, *, pause_s: float = 0.02) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    detach(mark, has_environment=True)
    detach(mark, has_environment=False)
    if os.fork() == 0:
        stay(mark)
    end = time.monotonic() + LIFE_S
    while time.monotonic() < end:
        os.write(1, b"flood " * 1000)
        time.sleep(pause_s)


def flooding(mark: str) -> None:
    stubborn(mark, pause_s=0.0)


def walking(mark: str) -> None:
    end = time.monotonic() + LIFE_S
    print("walking", flush=True)
    if os.fork() > 0:
        stay(mark)
    while time.monotonic() < end:
        if os.fork() > 0:
            os._exit(0)
        os.setsid()


def wide(mark: str) -> None:
    for _ in range(40):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(LIFE_S)
            os._exit(0)
    print("wide", flush=True)
    time.sleep(LIFE_S)


if __name__ == "__main__":
    kinds = {"stubborn": stubborn, "flooding": flooding, "walking": walking, "wide": wide}
    kinds[sys.argv[1]](sys.argv[2])
