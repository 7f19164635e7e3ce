"""The families that run now: in memory to know them, in a plain file to find them after a crash.

The file is the second net. The first are the monitors, which end their family when their owner dies;
only when a monitor was killed too is there anything left to sweep.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from posix import close  # os.close is gevent's, which puts it off

from fermix import native
from fermix.native import Spawned
from fermix.process import proc
from fermix.process.proc import ProcessFacts
from fermix.tasks import Deadline, TaskGroup, sleep
from fermix.trust import Standing

log = logging.getLogger(__name__)

MARK = "FERMIX_COMMAND"
"""Variable every process of a family inherits; its value is the family's id."""
MONITOR_NAME = "fermix-monitor"
"""Source: native/monitor.c"""
LINES_BEFORE_REWRITE = 1000
MONITOR_PATIENCE_S = 1.0
LOOK_AGAIN_S = 0.02
STUCK_S = 2.0
FAREWELL_S = 60.0


@dataclass(frozen=True, slots=True)
class Group:
    """A family by the facts that name it even after its number was given to another process."""

    identity: str
    boot_id: str
    monitor_pid: int
    monitor_started: int
    leader_pid: int
    leader_started: int
    standing: Standing

    def as_line(self) -> str:
        numbers = (self.monitor_pid, self.monitor_started, self.leader_pid, self.leader_started)
        return " ".join(["+", self.identity, self.boot_id, *map(str, numbers)]) + "\n"

    @staticmethod
    def from_line(line: str) -> Group | None:
        """None for a line that was not written whole."""
        words = line.split()
        if len(words) != 7 or words[0] != "+" or not all(word.isdigit() for word in words[3:]):
            return None
        monitor_pid, monitor_started, leader_pid, leader_started = map(int, words[3:])
        identity, boot = words[1:3]
        return Group(identity, boot, monitor_pid, monitor_started, leader_pid, leader_started, Standing())


_LOOKS = 5
"""How often families that change meanwhile are looked at again."""


class GroupLedger:
    """Knows every running family; one per daemon and home."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._lines = 0
        self._groups: dict[int, Group] = {}
        self._farewells = TaskGroup("farewells")

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, spawned: Spawned, identity: str, standing: Standing) -> Group:
        """Remember a family that was just started."""
        monitor, leader = proc.look(spawned.monitor_pid), proc.look(spawned.leader_pid)
        group = Group(
            identity,
            proc.boot_id(),
            spawned.monitor_pid,
            monitor.started if monitor else 0,
            spawned.leader_pid,
            leader.started if leader else 0,
            standing,
        )
        self._groups[group.monitor_pid] = group
        self._write(group.as_line())
        return group

    def remove(self, group: Group) -> None:
        """Forget a family that has ended."""
        if self._groups.pop(group.monitor_pid, None) is None:
            return
        if self._groups:
            self._write(f"- {group.identity}\n")
        elif self._fd is not None:
            os.ftruncate(self._fd, 0)
            self._lines = 0

    def see_off(self, group: Group, *, is_ended: bool) -> None:
        """Reap a monitor whose pipe is closed: at once when it has ended, else as soon as it does."""
        if is_ended:
            self._reap(group, block=True)
        elif not self._reap(group, block=False):
            self._farewells.start(lambda: self._await_end(group), name=group.identity)

    @property
    def is_seeing_off(self) -> bool:
        """Whether processes of an ended command may still be there."""
        return len(self._farewells) > 0

    def await_farewells(self, timeout_s: float) -> bool:
        """Whether every monitor that was left to end by itself has done so within `timeout_s`."""
        return self._farewells.join(timeout_s)

    def _await_end(self, group: Group) -> None:
        """A monitor that was stopped or is stuck gets help after a while."""
        for patience_s in (STUCK_S, FAREWELL_S):
            deadline = Deadline.after(patience_s)
            while not deadline.is_over():
                if self._reap(group, block=False):
                    return
                sleep(LOOK_AGAIN_S)
            self.sweep(group)
        log.error("Processes of command %s did not end after %s s", group.identity, FAREWELL_S)

    def _reap(self, group: Group, *, block: bool) -> bool:
        try:
            status = native.reap(group.monitor_pid, block=block)
        except ChildProcessError:
            status = 0  # someone who waits for all children was first
        if status is None:
            return False
        self.remove(group)
        return True

    def standing_of(self, pid: int) -> Standing | None:
        """The standing of the command above a process, unattended; None when it is not below us.

        A process below this daemon but below no known command gets the least standing, and so does one
        that is gone already: nobody can tell any more who started it.
        """
        chain = proc.ancestors(pid)
        if not chain:
            return Standing()
        for ancestor in chain:
            if group := self._groups.get(ancestor):
                return group.standing.narrowed(Standing(group.standing.trust, attended=False))
        return Standing() if os.getpid() in chain[1:] else None

    def is_free_of(self, inode: int) -> bool:
        """Whether surely no process of any family has this socket open."""
        for _ in range(_LOOKS):
            before = self._descendants()
            if any(proc.may_hold_socket(pid, inode) for pid, _ in before):
                return False
            if self._descendants() == before:  # else one that was not looked at may have taken it over
                return True
        return False

    def _descendants(self) -> set[tuple[int, int]]:
        """Pid and start time of every process below the monitors, which run our own code."""
        processes = proc.every_process()
        found = set(self._groups)
        while more := {facts.pid for facts in processes.values() if facts.parent in found} - found:
            found |= more
        return {(pid, processes[pid].started) for pid in found - self._groups.keys() if pid in processes}

    def sweep(self, group: Group) -> int:
        """End what is left of one family whose monitor was killed; returns how many processes."""
        return _sweep([group], patience_s=0.0, timeout_s=2.0, has_orphans=True)

    def sweep_leftovers(self, timeout_s: float = 5.0) -> int:
        """End what an earlier daemon of this home left behind; returns how many processes.

        Call it at start, holding the lease, before anything is spawned.
        """
        boot, left = proc.boot_id(), self._read()
        groups = [group for group in left if group.boot_id == boot]
        killed = _sweep(groups, patience_s=MONITOR_PATIENCE_S, timeout_s=timeout_s) if groups else 0
        if killed:
            log.info("Ended %s processes an earlier run left behind", killed)
        with suppress(FileNotFoundError):
            os.truncate(self._path, 0)
        return killed

    def _read(self) -> list[Group]:
        try:
            lines = self._path.read_text(encoding="ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        ended = {line[2:] for line in lines if line.startswith("- ")}
        groups = (Group.from_line(line) for line in lines)
        return [group for group in groups if group is not None and group.identity not in ended]

    def _write(self, line: str) -> None:
        """Append without fsync: a crash of fermix loses nothing, one of the machine ends them all."""
        try:
            if self._fd is None or self._lines >= LINES_BEFORE_REWRITE:
                self._rewrite()
            else:
                os.write(self._fd, line.encode("ascii"))
                self._lines += 1
        except OSError as error:
            log.warning("Cannot note running commands in %s: %s", self._path, error)

    def _rewrite(self) -> None:
        """Put a new file with what runs now in the old one's place."""
        fresh = self._path.with_name(self._path.name + ".new")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.writelines(group.as_line() for group in self._groups.values())
        fresh.replace(self._path)
        old, self._fd = self._fd, os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._lines = len(self._groups)
        if old is not None:
            close(old)


def _sweep(groups: list[Group], *, patience_s: float, timeout_s: float, has_orphans: bool = False) -> int:
    """SIGKILL until nothing of `groups` is found; monitors may do it themselves for `patience_s`.

    `has_orphans`: processes that left session and environment may have become our own children.
    """
    start, killed = time.monotonic(), set[tuple[int, int]]()
    monitors = {(group.monitor_pid, group.monitor_started) for group in groups}
    while (passed := time.monotonic() - start) < timeout_s:
        victims = _members(groups) + (_orphans() if has_orphans else [])
        alive = [facts for facts in victims if not facts.is_zombie]
        if not alive:
            break
        is_monitored = any((facts.pid, facts.started) in monitors for facts in alive)
        if not (is_monitored and passed < patience_s):
            for facts in alive:
                if _kill(facts):
                    killed.add((facts.pid, facts.started))
        sleep(LOOK_AGAIN_S)
    for pid, _ in killed:
        with suppress(ChildProcessError):  # what was no child of ours is reaped by its parent
            native.reap(pid, block=False)
    return len(killed)


def _kill(facts: ProcessFacts) -> bool:
    """SIGKILL to this very process, never to one that took over its number."""
    try:
        fd = native.pidfd_open(facts.pid)
    except OSError:
        return False
    try:
        now = proc.look(facts.pid)
        if now is None or now.started != facts.started:
            return False
        native.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError as error:
        log.warning("Cannot end process %s: %s", facts.pid, error)
        return False
    finally:
        close(fd)
    return True


def _orphans() -> list[ProcessFacts]:
    """Children of ours that no monitor stands above: we are a subreaper and start only monitors."""
    own = proc.look(os.getpid())
    return [
        facts
        for facts in proc.every_process().values()
        if own is not None
        and facts.parent == own.pid
        and facts.session != own.session
        and proc.name_of(facts.pid) != MONITOR_NAME
    ]


def _members(groups: list[Group]) -> list[ProcessFacts]:
    """What still belongs to `groups`: by pid and start time, session, mark or descent."""
    processes = proc.every_process()
    spared = set(proc.ancestors(os.getpid()))  # a command may have restarted the daemon
    roots = {(group.monitor_pid, group.monitor_started) for group in groups}
    roots |= {(group.leader_pid, group.leader_started) for group in groups}
    sessions = {
        group.leader_pid: group.leader_started
        for group in groups
        if (holder := processes.get(group.leader_pid)) is None or holder.started == group.leader_started
    }
    marks = frozenset(f"{MARK}={group.identity}".encode() for group in groups)
    found: set[int] = set()
    for facts in processes.values():
        is_root = (facts.pid, facts.started) in roots
        is_in_session = facts.session in sessions and facts.started >= sessions[facts.session]
        if is_root or is_in_session or proc.environment_holds(facts.pid, marks):
            found.add(facts.pid)
    found -= spared
    while more := {facts.pid for facts in processes.values() if facts.parent in found} - found - spared:
        found |= more
    return [processes[pid] for pid in found]
