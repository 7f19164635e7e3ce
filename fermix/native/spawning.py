"""Starting a command under a monitor that ends the command's whole family when it must."""

from __future__ import annotations

import errno
import os
import signal
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from os import PathLike
from posix import close  # not os.close: gevent's may wait for its hub, and we wait for the other end

from fermix.native.backend import reap, start_monitor

RECORD = struct.Struct("=iii")
"""One record of the status pipe: kind, value, detail. Source: native/monitor.h."""
TERMINATE, KILL = b"T", b"K"
STAGE_CHDIR = 1
UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the kernel allows each process of a command; None is no limit. Core files are never written."""

    memory_bytes: int | None = None
    """Private writable memory (RLIMIT_DATA: unlike the address space, runtimes do not reserve it ahead)."""
    cpu_s: int | None = None
    file_size_bytes: int | None = None
    open_files: int | None = None
    nice: int = 0
    """Added to our own niceness; 19 is the lowest priority."""

    def as_numbers(self) -> tuple[int, int, int, int, int]:
        """Raises: ValueError for a negative limit."""
        limits = (self.memory_bytes, self.cpu_s, self.file_size_bytes, self.open_files)
        for limit in limits:
            if limit is not None and limit < 0:
                raise ValueError(f"A limit is at least 0, not {limit}; None is no limit.")
        memory, cpu, file_size, files = (UNLIMITED if limit is None else limit for limit in limits)
        return memory, cpu, file_size, files, self.nice


class RecordKind(IntEnum):
    """What a monitor tells its owner."""

    STARTED = 1
    """value: the leader's pid."""
    FAILED = 2
    """value: errno; detail: the stage."""
    ENDED = 3
    """value: the leader's wait status."""
    SWEPT = 4
    """No descendant is left; the monitor exits."""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing a monitor said."""

    kind: RecordKind
    value: int
    detail: int


class RecordReader:
    """Cuts the bytes of a status pipe into records."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, received: bytes) -> list[Record]:
        text = self._rest + received
        whole = len(text) - len(text) % RECORD.size
        self._rest = text[whole:]
        return [
            Record(RecordKind(kind), value, detail)
            for kind, value, detail in RECORD.iter_unpack(text[:whole])
        ]


@dataclass(frozen=True, slots=True)
class Spawned:
    """A running command; the caller closes both descriptors and reaps the monitor."""

    monitor_pid: int
    leader_pid: int
    """Also the number of the leader's process group and session."""
    monitor_pipe_fd: int
    """Takes orders; closing it is the order to kill."""
    status_fd: int
    """Gives the records ENDED, then SWEPT, then end of file."""


def order_terminate(spawned: Spawned) -> None:
    """SIGTERM to the whole family, which may then end by itself until `order_kill`."""
    with suppress(BrokenPipeError):  # the monitor has swept already
        os.write(spawned.monitor_pipe_fd, TERMINATE)


def order_kill(spawned: Spawned) -> None:
    """SIGKILL to the whole family, again and again until none is left."""
    with suppress(BrokenPipeError):
        os.write(spawned.monitor_pipe_fd, KILL)


def spawn(
    argv: Sequence[str],
    *,
    cwd: PathLike[str] | str,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    limits: Limits | None = None,
    pass_fds: Sequence[int] = (),
    wait_readable: Callable[[int], None] | None = None,
) -> Spawned:
    """The command, running in its own session below its own monitor.

    The program is looked up in the PATH of `env`. `pass_fds` (each above 2) keep their numbers; nothing
    else is inherited. `wait_readable` waits for the status pipe cooperatively; without it this blocks
    until the program was executed (about a millisecond).

    Raises: OSError naming the program or the folder when it cannot be executed; ValueError for a command
    that no kernel takes (empty, a NUL inside).
    """
    if not argv:
        raise ValueError("A command needs at least a program name.")
    if any(fd < 3 for fd in pass_fds):
        raise ValueError(f"Passed descriptors are above 2, not {min(pass_fds)}.")
    _reap_given_up()
    path = find_program(argv[0], env.get("PATH", os.defpath), os.fspath(cwd))
    monitor_pid, control_fd, status_fd = start_monitor(
        _bytes(path),
        [_bytes(word) for word in argv],
        [_bytes(f"{name}={value}") for name, value in env.items()],
        _bytes(os.fspath(cwd)),
        (stdin, stdout, stderr),
        tuple(pass_fds),
        (limits or Limits()).as_numbers(),
    )
    try:
        if wait_readable is not None:
            wait_readable(status_fd)
        first = RecordReader().feed(os.read(status_fd, RECORD.size))
    except BaseException:
        # whoever waited was stopped: the closed pipe ends the command, but a program that is still
        # being loaded (from a network disk that sleeps) must not keep us here as well; SIGCONT for a
        # program that was quick enough to stop its monitor before that could say a word
        _close(control_fd, status_fd)
        os.kill(monitor_pid, signal.SIGCONT)
        _given_up.add(monitor_pid)
        raise
    if first and first[0].kind is RecordKind.STARTED:
        return Spawned(monitor_pid, first[0].value, control_fd, status_fd)
    _close(control_fd, status_fd)
    reap(monitor_pid, block=True)
    raise _failure(first, argv[0], os.fspath(cwd))


_given_up: set[int] = set()
"""Monitors of commands whose start nobody waited for; the next spawn reaps those that have ended."""


def _reap_given_up() -> None:
    for pid in list(_given_up):
        try:
            is_ended = reap(pid, block=False) is not None
        except ChildProcessError:
            is_ended = True
        if is_ended:
            _given_up.discard(pid)


def find_program(name: str, search_path: str, cwd: str) -> str:
    """Where `name` stands, as a shell would find it; a name with a slash is left as it is.

    Raises: FileNotFoundError naming the program and where it was looked for.
    """
    if "/" in name:
        return name
    for folder in search_path.split(os.pathsep):
        candidate = os.path.join(cwd, folder, name)  # noqa: PTH118 - Path costs ten times as much, per folder
        try:
            mode = os.stat(candidate).st_mode  # noqa: PTH116 - likewise
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(mode) and os.access(candidate, os.X_OK):
            return candidate
    raise FileNotFoundError(errno.ENOENT, f"No program of this name in {search_path!r}", name)


def _failure(records: list[Record], program: str, cwd: str) -> OSError:
    if not records:
        return OSError(errno.EIO, "The monitor ended before the program was executed", program)
    record = records[0]
    return OSError(
        record.value, os.strerror(record.value), cwd if record.detail == STAGE_CHDIR else program
    )


def _bytes(text: str) -> bytes:
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError(f"A command cannot hold a NUL character, as {text[:40]!r} does.")
    return encoded


def _close(*fds: int) -> None:
    for fd in fds:
        close(fd)
