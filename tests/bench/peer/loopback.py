"""Goes on in a network namespace with nothing but loopback, so that nothing measured can reach the net."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys

INSIDE = "--inside"
"""The word that says the namespace is ours already."""

_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_UP = 0x1
_TIMEOUT_S = 3600


def enter(module: str, *words: str) -> int:
    """Run a module again within a new namespace; its exit status.

    Needs root or user namespaces; `unshare` says on stderr what it was not allowed.
    """
    user = () if os.geteuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
    command = ["unshare", "--net", *user, sys.executable, "-m", module, INSIDE, *words]
    return subprocess.run(command, check=False, timeout=_TIMEOUT_S).returncode


def bring_up() -> None:
    """Make 127.0.0.1 work in a namespace where every interface is down.

    Source: netdevice(7), SIOCSIFFLAGS on a struct ifreq.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        request = bytearray(struct.pack("16sH22x", b"lo", 0))
        fcntl.ioctl(link, _GET_FLAGS, request)
        (flags,) = struct.unpack_from("H", request, 16)
        struct.pack_into("H", request, 16, flags | _UP)
        fcntl.ioctl(link, _SET_FLAGS, request)


def is_alone() -> bool:
    """Whether loopback is the only interface."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]
