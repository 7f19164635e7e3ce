"""Whose service it is: the owner of the home, as whom a system unit runs and its files are written."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fermix.errors import ServiceError
from fermix.setup.service.systemd import Account


@dataclass(frozen=True, slots=True)
class Owner:
    """A person of this machine."""

    uid: int
    gid: int
    user: str
    group: str
    folder: Path
    """Their own folder, where `~` leads."""

    @property
    def account(self) -> Account:
        """As a unit names them."""
        return Account(self.user, self.group)


def person(uid: int) -> Owner:
    """The person of a number.

    Raises: ServiceError when this machine knows nobody of that number.
    """
    try:
        found = pwd.getpwuid(uid)
    except KeyError as exc:
        raise ServiceError(
            f"No user of this machine has the number {uid}.", hint="getent passwd; ls -ldn ~/.fermix"
        ) from exc
    try:
        group = grp.getgrgid(found.pw_gid).gr_name
    except KeyError:
        group = str(found.pw_gid)
    return Owner(uid, found.pw_gid, found.pw_name, group, Path(found.pw_dir))


def caller(environment: Mapping[str, str]) -> Owner:
    """Who typed the command; behind sudo that is who called it."""
    uid = environment.get("SUDO_UID", "")
    return person(int(uid) if os.geteuid() == 0 and uid.isdigit() else os.geteuid())


def owner_of(home: Path, environment: Mapping[str, str]) -> Owner:
    """Whose home it is: of a folder that is not there yet, of whoever typed the command."""
    try:
        return person(home.stat().st_uid)
    except FileNotFoundError:
        return caller(environment)


@contextlib.contextmanager
def acting_as(owner: Owner) -> Iterator[None]:
    """Touch files with the owner's rights only, while root does so on their behalf.

    A home is its owner's: a link in it must not lead root to any other file. Changes the whole process,
    which has one thread.
    """
    if os.geteuid() != 0 or owner.uid == 0:
        yield
        return
    uid, gid, groups = os.geteuid(), os.getegid(), os.getgroups()
    os.setgroups(os.getgrouplist(owner.user, owner.gid))
    os.setegid(owner.gid)
    os.seteuid(owner.uid)
    try:
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)
        os.setgroups(groups)
