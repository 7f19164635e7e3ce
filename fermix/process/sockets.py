"""Which socket is at the other end of a TCP connection on this machine."""

from __future__ import annotations

import _socket
import struct
from dataclasses import dataclass
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, IPPROTO_TCP, inet_pton

Address = tuple[str, int]
"""An IP address without its zone, and a port."""

# Source: sock_diag(7) and linux/inet_diag.h: `inet_diag_req_v2`, answered by `inet_diag_msg`.
_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_WANTED = struct.Struct("=BBBBI")
_ANY_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_USER_AT = _HEADER.size + 64
_TIMEOUT_S = 0.5


@dataclass(frozen=True, slots=True)
class Socket:
    """One that a process of this machine has open."""

    inode: int
    uid: int
    """The user who made it."""


def socket_between(own: Address, other: Address) -> Socket | None:
    """The TCP socket at `own` that is connected to `other`; None when nobody here has it open.

    Asks the kernel for this very one (about 20 µs); where it cannot be asked, looks through all of them.
    """
    own, other = _unmapped(own), _unmapped(other)
    try:
        return _asked(own, other)
    except OSError:  # a kernel without inet_diag, or a sandbox that forbids netlink
        return looked_up(own[1], other[1])


def is_loopback(address: Address) -> bool:
    """Whether only this machine can have it."""
    return ip_address(_unmapped(address)[0]).is_loopback


def _asked(own: Address, other: Address) -> Socket | None:
    family = AF_INET6 if ":" in own[0] else AF_INET
    wanted = (
        _WANTED.pack(family, IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
        + struct.pack("!HH", own[1], other[1])
        + inet_pton(family, own[0]).ljust(16, b"\0")
        + inet_pton(family, other[0]).ljust(16, b"\0")
        + _ANY_COOKIE
    )
    # Not gevent's: the kernel answers within the call.
    netlink = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, _SOCK_DIAG)
    try:
        netlink.settimeout(_TIMEOUT_S)
        netlink.sendto(
            _HEADER.pack(_HEADER.size + len(wanted), _BY_FAMILY, _REQUEST, 1, 0) + wanted, (0, 0)
        )
        answer = netlink.recv(8192)
    finally:
        netlink.close()
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY or len(answer) < _USER_AT + 8:
        number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if number == 2:  # ENOENT
            return None
        raise OSError(number, "the kernel was asked for a socket")
    uid, inode = struct.unpack_from("=II", answer, _USER_AT)
    return Socket(inode, uid) if inode else None


def looked_up(port: int, other_port: int) -> Socket | None:
    """By the ports alone, which are hexadecimal; user and inode are the eighth and tenth field.

    Source: proc(5), /proc/net/tcp.
    """
    ends = (f":{port:04X}", f":{other_port:04X}")
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:  # noqa: PTH123 - Path costs more than the read
                for line in file:
                    fields = line.split()
                    if fields[1].endswith(ends[0]) and fields[2].endswith(ends[1]):
                        return Socket(int(fields[9]), int(fields[7])) if fields[9] != "0" else None
        except OSError:
            continue  # a kernel without IPv6
    return None


def _unmapped(address: Address) -> Address:
    """An IPv4 address that an IPv6 socket shows, as IPv4."""
    host = address[0].partition("%")[0]
    return (host.removeprefix("::ffff:") if "." in host else host), address[1]
