"""What this kernel can do, and what fermix goes without where it cannot."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from fermix.process.trial import succeeds_in_child
from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("kernel")
# Source: linux/landlock.h, uapi/asm-generic/unistd.h (the number is the same on every architecture)
SYS_LANDLOCK_CREATE_RULESET = 444
LANDLOCK_CREATE_RULESET_VERSION = 1
# Source: linux/prctl.h
PR_GET_SECCOMP = 21
PR_GET_CHILD_SUBREAPER = 37
CLONE_NEWUSER = 0x10000000
"""Source: linux/sched.h"""
SECCOMP_ACTIONS = Path("/proc/sys/kernel/seccomp/actions_avail")


def look(scene: Scene) -> list[Finding]:
    """Landlock, seccomp, user namespaces, pidfds and subreapers."""
    abi = landlock_abi()
    had = {
        "Landlock": abi > 0,
        "seccomp": has_seccomp(),
        "user namespaces": has_user_namespaces(),
        "pidfd": has_pidfd(),
        "subreaper": _prctl_into_int(PR_GET_CHILD_SUBREAPER),
    }
    findings = [
        TOPIC.warn(f"This kernel has no {name} for us: {_LOST[name][0]}.", _LOST[name][1])
        for name, is_had in had.items()
        if not is_had
    ]
    names = [
        f"{name} (ABI {abi})" if name == "Landlock" else name for name, is_had in had.items() if is_had
    ]
    release = os.uname().release
    return [
        TOPIC.ok(f"Linux {release} has {', '.join(names) or 'none of what fermix asks for'}."),
        *findings,
    ]


_LOST = {
    "Landlock": ("commands are not kept to their folders by the kernel", "cat /sys/kernel/security/lsm"),
    "seccomp": ("commands are not kept from dangerous system calls", "grep Seccomp /proc/self/status"),
    "user namespaces": (
        "commands cannot be given a network and processes of their own",
        "sysctl user.max_user_namespaces kernel.unprivileged_userns_clone "
        "kernel.apparmor_restrict_unprivileged_userns",
    ),
    "pidfd": ("what a killed daemon left behind cannot be ended safely", "uname -r  # 5.3 or newer has it"),
    "subreaper": (
        "processes that detach themselves outlive their command",
        "uname -r  # 3.4 or newer has it",
    ),
}
"""Ability -> what is lost without it, and where to look."""


def landlock_abi() -> int:
    """The version of Landlock this kernel speaks; 0 when it has none or it is off.

    Source: https://docs.kernel.org/userspace-api/landlock.html (LANDLOCK_CREATE_RULESET_VERSION)
    """
    answer = int(
        _libc().syscall(
            ctypes.c_long(SYS_LANDLOCK_CREATE_RULESET),
            None,
            ctypes.c_size_t(0),
            ctypes.c_uint32(LANDLOCK_CREATE_RULESET_VERSION),
        )
    )
    return max(answer, 0)


def has_seccomp() -> bool:
    """Whether filters of system calls can be set."""
    return int(_libc().prctl(PR_GET_SECCOMP, 0, 0, 0, 0)) >= 0 and SECCOMP_ACTIONS.exists()


def has_pidfd() -> bool:
    """Whether a process can be named by a descriptor."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def has_user_namespaces() -> bool:
    """Whether an ordinary process may make one: tried in a child, since many settings can forbid it."""
    libc = _libc()
    return succeeds_in_child(lambda: int(libc.unshare(CLONE_NEWUSER)) == 0)


def _prctl_into_int(option: int) -> bool:
    value = ctypes.c_int()
    return int(_libc().prctl(option, ctypes.byref(value), 0, 0, 0)) == 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
