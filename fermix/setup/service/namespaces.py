"""Whether a user's service can live in a user namespace here, which its fuller protection needs."""

from __future__ import annotations

import ctypes
from pathlib import Path

from fermix.process.trial import succeeds_in_child

_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_RECURSIVE_SLAVE = 0x4000 | 0x80000
"""Source: linux/sched.h (CLONE_NEWUSER, CLONE_NEWNS), linux/mount.h (MS_REC, MS_SLAVE)."""

SSH_FOLDER = Path("/etc/ssh/ssh_config.d")


def reason_against(ssh_folder: Path = SSH_FOLDER) -> str | None:
    """Why the plain unit is the right one on this machine; None when the confined one is.

    Takes a few milliseconds: it tries in a child process.
    """
    if not _can_make_namespace():
        return "this system gives users no namespaces of their own"
    if any(ssh_folder.glob("*.conf")):
        # ssh reads included files of root and of the person only; in the namespace root's are `nobody`'s.
        return f"ssh would refuse the files in {ssh_folder}"
    return None


def _can_make_namespace() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)

    def make() -> bool:
        made = int(libc.unshare(_NEW_USER | _NEW_MOUNTS)) == 0
        # AppArmor lets the namespace be made and gives no rights in it; only the mount shows that.
        return made and int(libc.mount(b"none", b"/", None, _RECURSIVE_SLAVE, None)) == 0

    return succeeds_in_child(make)
