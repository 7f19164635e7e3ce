"""What a killed fermix left in the home: a socket, a pid, half-written files, processes, old uploads."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from fermix.ipc.address import socket_address
from fermix.paths import Home
from fermix.process import proc
from fermix.process.locks import is_locked
from fermix.setup.doctor.finding import Finding, Topic, quoted
from fermix.setup.doctor.lease import kept_out
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("leftovers")
WRITING_S = 600.0
"""A file that was touched this lately may still be written."""
DOWNLOAD_S = 86_400.0
"""A download is taken up again where it was cut within a day."""
UPLOAD_S = 86_400.0
"""Source: daemon.blobs.KEPT_MS, after which the daemon removes them too"""
_STAGED = re.compile(r"\..+\.([0-9a-f]{12}\.tmp|new)")
"""Source: config.atomic.stage, setup.service.files"""
_MARK = "FERMIX_COMMAND"
"""Source: process.ledger.MARK"""


def look(scene: Scene) -> list[Finding]:
    """Everything the next start would sweep, and what it would not."""
    is_served = scene.status is not None or is_locked(scene.home.lease)
    findings = [*_processes(scene.home), *_pid(scene.home), *_socket(scene.home)] if not is_served else []
    findings += [*_half_written(scene, is_served), *_uploads(scene)]
    return findings or [TOPIC.ok("Nothing was left behind.")]


def _pid(home: Home) -> list[Finding]:
    path = home.pid_file
    if not path.is_file():
        return []
    text = path.read_text("ascii", "replace").strip()[:20]
    return [
        TOPIC.warn(
            f"'{path}' names process {text!r}, but no fermix serves this home.",
            f"rm {quoted(path)}",
            fix=partial(_remove_unserved, home, path, "the stale pid file"),
        )
    ]


def _socket(home: Home) -> list[Finding]:
    path = home.socket
    try:
        found = path.lstat()
    except OSError:
        return []
    if not stat.S_ISSOCK(found.st_mode):
        return [
            TOPIC.fail(
                f"'{path}' is in the way; expected a socket.", f"mv {quoted(path)} {quoted(path)}.aside"
            )
        ]
    if not _is_deserted(path):
        return [TOPIC.fail(f"Another program answers on '{path}'.", f"fuser -v {quoted(path)}")]
    return [
        TOPIC.warn(
            f"Nobody answers on the socket '{path}'.",
            f"rm {quoted(path)}",
            fix=partial(
                _remove_unserved, home, path, "the stale socket", is_still=partial(_is_deserted, path)
            ),
        )
    ]


def _is_deserted(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, socket_address(path) as address:
        probe.setblocking(False)
        return probe.connect_ex(address) == errno.ECONNREFUSED


def _remove_unserved(
    home: Home, path: Path, what: str, *, is_still: Callable[[], bool] | None = None
) -> str:
    """Raises: LeaseHeld when a daemon was started meanwhile."""
    with kept_out(home):
        if is_still is None or is_still():
            path.unlink(missing_ok=True)
    return f"removed {what} '{path}'"


def _processes(home: Home) -> list[Finding]:
    alive = surviving(home)
    if not alive:
        return []
    names = ", ".join(f"'{proc.name_of(pid)}' (pid {pid})" for pid in alive[:5])
    more = f" and {len(alive) - 5} more" if len(alive) > 5 else ""
    return [
        TOPIC.fail(
            f"Processes of a daemon that was killed still run: {names}{more}.",
            f"kill -9 {' '.join(map(str, alive))}",
            fix=partial(_sweep, home),
        )
    ]


def surviving(home: Home) -> list[int]:
    """Processes that belong to a family noted in run.groups, after the daemon that noted them ended.

    Source: process.ledger, the lines of the file and what makes a process a member.
    """
    try:
        lines = home.groups.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    ended = {line[2:] for line in lines if line.startswith("- ")}
    families = [
        words
        for words in map(str.split, lines)
        if len(words) == 7
        and words[0] == "+"
        and words[1] not in ended
        and all(map(str.isdigit, words[3:]))
    ]
    ours = [words for words in families if words[2] == proc.boot_id()]
    if not ours:
        return []
    roots = {(int(words[at]), int(words[at + 1])) for words in ours for at in (3, 5)}
    spared = proc.ancestors(os.getpid())  # such a process may have asked for this very examination
    marks = frozenset(f"{_MARK}={words[1]}".encode() for words in ours)
    return sorted(
        facts.pid
        for facts in proc.every_process().values()
        if not facts.is_zombie
        and facts.pid not in spared
        and ((facts.pid, facts.started) in roots or proc.environment_holds(facts.pid, marks))
    )


def _sweep(home: Home) -> str:
    """What the next start does first. Raises: LeaseHeld when that has begun."""
    from fermix.process.ledger import GroupLedger  # gevent, which no other check needs

    with kept_out(home):
        count = GroupLedger(home.groups).sweep_leftovers()
    return f"ended {count} processes a killed daemon left behind"


def _half_written(scene: Scene, is_served: bool) -> list[Finding]:
    home, now_s = scene.home, scene.now_s
    swept = [
        path for path in (home.root / ".fermix.pid.new", home.root / "run.groups.new") if not is_served
    ]
    staged = [
        path
        for folder in (home.root, home.secrets, home.models)
        for path in _inside(folder)
        if _STAGED.fullmatch(path.name)
    ]
    parts = [path for path in _inside(home.models) if path.name.endswith((".part", ".part.json"))]
    old = [
        *(path for path in swept if _is_file(path)),
        *_older(staged, now_s - WRITING_S),
        *_older(parts, now_s - DOWNLOAD_S),
    ]
    return _files(old, "was left half written")


def _uploads(scene: Scene) -> list[Finding]:
    old = list(_older(_inside(scene.home.blobs), scene.now_s - UPLOAD_S))
    return _files(old, "was uploaded over a day ago and no message took it")


def _files(paths: list[Path], what: str) -> list[Finding]:
    return [
        TOPIC.warn(f"'{path}' {what}.", f"rm {quoted(path)}", fix=partial(_remove, path, path.lstat()))
        for path in paths
    ]


def _remove(path: Path, seen: os.stat_result) -> str:
    """Only the file that was seen; one that was written since stays."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        if (found.st_ino, found.st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns):
            path.unlink()
    return f"removed '{path}'"


def _older(paths: Iterable[Path], than_s: float) -> Iterable[Path]:
    return [path for path in paths if _is_file(path) and path.lstat().st_mtime < than_s]


def _is_file(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
