"""Makes the home: private folders that belong to whoever runs fermix."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from fermix.errors import ConfigError, HomeUnsafe
from fermix.paths import Home


def prepare_home(home: Home) -> None:
    """Create the home (0700) and its folders where they are missing, and check those that are there.

    Raises: HomeUnsafe when someone else owns a folder, or may look into the home or its secrets;
    ConfigError when a folder cannot be made.
    """
    _prepare(home.root, is_private=True)
    _prepare(home.secrets, is_private=True)
    # Below the private root these are out of reach; a link to a folder elsewhere is the owner's wish.
    for folder in (home.workspace, home.logs, home.blobs, home.models):
        _prepare(folder, is_private=False)


def check_private(folder: Path) -> None:
    """Refuse a folder that others own or may enter; symbolic links are followed.

    Raises: HomeUnsafe with the command that repairs it; FileNotFoundError when it is missing.
    """
    found = folder.stat()
    _check_owner(folder, found)
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise HomeUnsafe(
            f"{folder} has mode {mode:04o}: others can reach what is in it. Expected 0700.",
            hint=f"chmod 700 {shlex.quote(str(folder))}",
        )


def check_private_file(path: Path, found: os.stat_result, *, called: str = "it") -> None:
    """Refuse an open file that others own or can reach; root's are as good as one's own.

    Raises: HomeUnsafe with the command that repairs it.
    """
    name = shlex.quote(str(path))
    if found.st_uid not in (os.geteuid(), 0):
        raise HomeUnsafe(
            f"{path} belongs to user {found.st_uid}, and fermix runs as user {os.geteuid()}.",
            hint=f"sudo chown {os.geteuid()} {name}",
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise HomeUnsafe(
            f"{path} has mode {mode:04o}: others can reach {called}. Expected 0600.",
            hint=f"chmod 600 {name}",
        )


def _prepare(folder: Path, *, is_private: bool) -> None:
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_private:
            check_private(folder)
        else:
            _check_owner(folder, folder.stat())
    except FileExistsError as exc:
        raise ConfigError(f"{folder} is not a folder.", hint=f"ls -ld {shlex.quote(str(folder))}") from exc
    except OSError as exc:
        raise ConfigError(
            f"Cannot make {folder}: {exc.strerror}.",
            hint="Name a folder you can write to in FERMIX_HOME, or repair this one.",
        ) from exc


def _check_owner(folder: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise HomeUnsafe(
            f"{folder} belongs to user {found.st_uid}, and fermix runs as user {os.geteuid()}.",
            hint=f"sudo chown -R {os.geteuid()} {shlex.quote(str(folder))}",
        )
