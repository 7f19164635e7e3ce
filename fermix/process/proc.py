"""What /proc says about processes: who is whose parent, and whether a number still means the same one.

Source: proc(5), /proc/[pid]/stat; a start time is in clock ticks since boot.
"""

from __future__ import annotations

import os
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
    """Whether a process has this socket open, or does not let us see what it has open."""
    return _holds_socket(pid, inode) is not False


def _holds_socket(pid: int, inode: int) -> bool | None:
    """None when that cannot be seen."""
    link = f"socket:[{inode}]"
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - as above
    except FileNotFoundError:
        return False
    except OSError:
        return None
    for name in names:
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}") == link:  # noqa: PTH115 - as above
                return True
        except OSError:
            continue
    return False


@cache
def boot_id() -> str:
    """Names this boot of the machine: after another one no pid means anything."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123 - as above
        return file.read().strip()
