"""What /proc says about processes: who is whose parent, and whether a number still means the same one.

Source: proc(5), /proc/[pid]/stat; a start time is in clock ticks since boot.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_WALKS = 3
"""How often a line of ancestors is followed again when one of them ended meanwhile."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One line of /proc."""

    pid: int
    parent: int
    session: int
    started: int
    """Clock ticks since boot; with the pid and the boot id it names one process for ever."""
    is_zombie: bool


def look(pid: int) -> ProcessFacts | None:
    """The facts of a process, None when there is none of this number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - Path costs more than the read
            text = file.read()
    except OSError:  # gone, or hidden from us by the mount options of /proc
        return None
    # "pid (name) state ppid pgrp session …": the name may hold anything, so count from the last ')'
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessFacts(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in (b"Z", b"X"))


def every_process() -> dict[int, ProcessFacts]:
    """All processes there are at about this moment."""
    found = (look(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - likewise
    return {facts.pid: facts for facts in found if facts is not None}


def environment_holds(pid: int, marks: frozenset[bytes]) -> bool:
    """Whether a process was started with one of the lines `NAME=value`; False when that cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - likewise
            return not marks.isdisjoint(file.read().split(b"\0"))
    except OSError:
        return False


def name_of(pid: int) -> str:
    """The name a process gave itself, empty when it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - likewise
            return file.read().rstrip("\n")
    except OSError:
        return ""


def ancestors(pid: int) -> list[int]:
    """`pid`, its parent and so on up to the first process, or to one that is hidden from us.

    Empty when it is gone, or when the line could not be followed since others in it keep ending.
    """
    for _ in range(_WALKS):
        chain: list[int] = []
        above = pid
        while above > 0 and above not in chain and (facts := look(above)) is not None:
            chain.append(above)
            above = facts.parent
        if chain and (above == 0 or _exists(above)):
            return chain
    return []


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def holder_of(inode: int) -> int | None:
    """A process that has this socket open; None when none is seen that does."""
    names = (name for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - as above
    return next((int(name) for name in names if _holds_socket(int(name), inode)), None)


def may_hold_socket(pid: int, inode: int) -> bool:
    """Whether a process has this socket open, or may hold it where we do not see it.

    A thread may have descriptors of its own. Others see no file that is registered with an io_uring, nor
    one that was sent through a Unix socket and not received yet.
    """
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - as above
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(_may_hold(f"/proc/{pid}/task/{thread}", inode) for thread in threads)


def _holds_socket(pid: int, inode: int) -> bool:
    """False also when that cannot be seen."""
    wanted = f"socket:[{inode}]"
    return any(target == wanted for _, target in _open_files(f"/proc/{pid}") or ())


def _may_hold(folder: str, inode: int) -> bool:
    files = _open_files(folder)
    if files is None:
        return True
    suspects = (f"socket:[{inode}]", "anon_inode:[io_uring]")
    return any(
        target in suspects or (target.startswith("socket:") and _carries_files(f"{folder}/fdinfo/{name}"))
        for name, target in files
    )


def _open_files(folder: str) -> Iterator[tuple[str, str]] | None:
    """Number and target of every descriptor of the process or thread at `folder`; None when hidden."""
    try:
        names = os.listdir(f"{folder}/fd")  # noqa: PTH208 - as above
    except FileNotFoundError:
        names = []
    except OSError:
        return None
    return ((name, target) for name in names if (target := _target(f"{folder}/fd/{name}")))


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - as above
    except OSError:  # closed meanwhile
        return ""


def _carries_files(description: str) -> bool:
    """Source: linux/net/unix/af_unix.c, `scm_fds` counts the files waiting to be received."""
    try:
        with open(description, "rb") as file:  # noqa: PTH123 - as above
            lines = file.read().splitlines()
    except OSError:
        return False
    return any(line.startswith(b"scm_fds:") and int(line[8:]) > 0 for line in lines)


@cache
def boot_id() -> str:
    """Names this boot of the machine: after another one no pid means anything."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123 - as above
        return file.read().strip()
