"""Who is at the other end: the peer itself, or whom a named reverse proxy speaks for."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDING = ("x-forwarded-for", "forwarded", "x-real-ip")
"""Headers with which a proxy says that it speaks for somebody."""
_LONGEST_CHAIN = 32


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a request comes from."""

    address: str
    """As failed tokens are counted by: an IPv6 host counts as its /64 network."""
    is_local: bool
    """A program of this machine that speaks for itself; it alone may use the api-token."""
    is_foreign: bool = False
    """Another machine that is no named proxy made the connection."""


def peer_of(remote: str, headers: Mapping[str, str], proxies: Sequence[str]) -> Peer:
    """Who asks. `remote` is the address the connection came from, as the kernel says.

    Forwarding headers are believed only from `proxies`. From anybody else they show that something
    unnamed stands in between, and what comes through it is not local, wherever it connected from.
    """
    address = _address(remote)
    if address is None:
        return Peer(remote[:64], False, True)
    networks = _networks(tuple(proxies))
    if not _is_in(address, networks):
        is_forwarded = any(name in headers for name in FORWARDING)
        is_near = address.is_loopback
        return Peer(_counted(address), is_near and not is_forwarded, not is_near)
    hops = [hop.strip() for hop in headers.get("x-forwarded-for", "").split(",")][-_LONGEST_CHAIN:]
    for hop in reversed(hops):  # the last one was written by the nearest proxy
        client = _address(hop)
        if client is None:
            break
        if not _is_in(client, networks):
            return Peer(_counted(client), False)
    return Peer(_counted(address), False)


def network_of(text: str) -> Network | None:
    """An address or network as in `10.0.0.0/8`; None when it is neither."""
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return None


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _counted(address: Address) -> str:
    if isinstance(address, ipaddress.IPv6Address) and not address.is_loopback:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


@lru_cache(maxsize=16)
def _networks(proxies: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(network for network in map(network_of, proxies) if network is not None)


def _is_in(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
