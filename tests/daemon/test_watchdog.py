"""The heartbeat goes on whatever the machine is short of."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

BEATING = """
from gevent import monkey
monkey.patch_all()
import gevent, logging, resource, sys
from fermix.daemon.watchdog import Heartbeat
logging.basicConfig(stream=sys.stdout, format="%(message)s")
beats = []
heart = Heartbeat(lambda: beats.append(1), blocked_log_ms=lambda: 100, log_fd=lambda: 2)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 4_000_000, most))
heart.start()
gevent.sleep(0.5)
print("beats" if len(beats) > 2 else "silent")
resource.setrlimit(resource.RLIMIT_AS, (most, most))
heart.stop()
"""
"""A thread's stack no longer fits, as when a command has used up all processes."""


def test_heart_beats_on_when_no_thread_can_be_started() -> None:
    command = [sys.executable, "-c", BEATING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.stdout.splitlines() == ["beats"], done.stderr


def test_arbiter_with_no_room_for_a_worker_starts_one_when_there_is(daemon, until) -> None:
    daemon.start()
    arbiter, worker = daemon.arbiter, daemon.ping()
    before = resource.prlimit(arbiter, resource.RLIMIT_NOFILE)
    resource.prlimit(arbiter, resource.RLIMIT_NOFILE, (4, before[1]))

    os.kill(worker, signal.SIGKILL)
    until(lambda: "A worker cannot be started" in daemon.log())
    resource.prlimit(arbiter, resource.RLIMIT_NOFILE, before)

    until(lambda: daemon.ping() not in (None, worker))
    assert daemon.arbiter == arbiter
