"""The home: whose it is, and who else could look into it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from fermix.errors import HomeUnsafe
from fermix.setup.doctor.finding import Finding, Topic, quoted
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("home")
PRIVATE_NAMES = ("memory.db", "memory.db-wal", "memory.db-shm", "api-token", "tokens.toml", "auth.json")
MORE_PRIVATE_NAMES = ("service.env", "chat_history", "daemon.sock", "logs/fermix.log")


def look(scene: Scene) -> list[Finding]:
    """Owners and modes of the home, its folders and its files."""
    root = scene.home.root
    try:
        found = root.stat()
    except FileNotFoundError:
        return [TOPIC.skipped(f"There is no home '{root}' yet; the first start makes it.", "fermix setup")]
    except PermissionError:
        told = f"You may not enter the folder of '{root}'."
        return [TOPIC.fail(told, "set FERMIX_HOME to a folder of yours")]
    if not stat.S_ISDIR(found.st_mode):
        return [TOPIC.fail(f"'{root}' is not a folder.", f"mv {quoted(root)} {quoted(root)}.aside")]
    if found.st_uid != os.geteuid():
        return [_foreign_home(root, found)]
    findings = [*_mode(root, found, 0o700), *_folders(scene), *_files(scene)]
    return findings or [TOPIC.ok(f"'{root}' is yours alone.")]


def _folders(scene: Scene) -> Iterator[Finding]:
    home = scene.home
    for folder in (home.secrets, home.workspace, home.logs, home.blobs, home.models):
        try:
            found = folder.stat()
        except FileNotFoundError:
            if home.database.exists() and not folder.is_symlink():
                yield TOPIC.warn(
                    f"The folder '{folder}' is missing.",
                    f"mkdir -m 700 {quoted(folder)}",
                    fix=partial(_make, folder),
                )
            continue
        if not stat.S_ISDIR(found.st_mode):
            yield TOPIC.fail(f"'{folder}' is not a folder.", f"mv {quoted(folder)} {quoted(folder)}.aside")
        elif found.st_uid != os.geteuid():
            yield _foreign(folder, found)
        elif folder == home.secrets:
            yield from _mode(folder, found, 0o700)


def _files(scene: Scene) -> Iterator[Finding]:
    home = scene.home
    named = [home.root / name for name in (*PRIVATE_NAMES, *MORE_PRIVATE_NAMES)]
    backups = [path for path in _inside(home.root) if path.name.startswith(f"{home.config.name}.bak")]
    for path in (*named, *backups, *_inside(home.secrets)):
        found = _seen(path)
        if found is None or stat.S_ISDIR(found.st_mode):
            continue
        if found.st_uid not in (os.geteuid(), 0):
            yield _foreign(path, found)
        else:
            yield from _mode(path, found, 0o600)
    yield from _config(home.config)


def _config(path: Path) -> Iterator[Finding]:
    """Others may read it in a private home, it holds no secrets; change it they may not."""
    found = _seen(path)
    if found is None:
        return
    if found.st_uid not in (os.geteuid(), 0):
        yield _foreign(path, found)
    elif stat.S_ISREG(found.st_mode) and found.st_mode & stat.S_IWOTH:
        yield from _mode(path, found, 0o600)


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # missing, or reported as what it is
        return []


def _seen(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _mode(path: Path, found: os.stat_result, wanted: int) -> Iterator[Finding]:
    mode = stat.S_IMODE(found.st_mode)
    others, own = mode & 0o077, wanted & ~mode
    if not others and not own:
        return
    trouble = "others can reach it" if others else "you cannot use it yourself"
    yield TOPIC.fail(
        f"'{path}' has mode {mode:04o}: {trouble}. Expected {wanted:04o}.",
        f"chmod {wanted:o} {quoted(path)}",
        fix=partial(_close, path, wanted) if found.st_uid == os.geteuid() else None,
    )


def _foreign_home(root: Path, found: os.stat_result) -> Finding:
    """root looks after another's home more often than it owns the wrong one."""
    if os.geteuid() != 0:
        return TOPIC.fail(
            f"'{root}' belongs to user {found.st_uid}, and you are user {os.geteuid()}.",
            f"set FERMIX_HOME to a folder of yours, or: sudo chown -R {os.geteuid()} {quoted(root)}",
        )
    return TOPIC.fail(
        f"'{root}' belongs to user {found.st_uid}, and you are root.",
        f"sudo -u '#{found.st_uid}' FERMIX_HOME={quoted(root)} fermix doctor",
    )


def _foreign(path: Path, found: os.stat_result) -> Finding:
    return TOPIC.fail(
        f"'{path}' belongs to user {found.st_uid}, and you are user {os.geteuid()}.",
        f"sudo chown -R {os.geteuid()} {quoted(path)}",
    )


def _close(path: Path, mode: int) -> str:
    """Raises: HomeUnsafe when it is not ours any more."""
    if path.stat().st_uid != os.geteuid():
        raise HomeUnsafe(f"'{path}' belongs to someone else now.", hint=f"ls -ld {quoted(path)}")
    path.chmod(mode)
    return f"'{path}' has mode {mode:04o} now"


def _make(folder: Path) -> str:
    folder.mkdir(mode=0o700, exist_ok=True)
    return f"made the folder '{folder}'"
