"""Whether an IP address is one anybody on the internet may be sent to.

Source: https://www.iana.org/assignments/iana-ipv6-special-registry and
https://www.iana.org/assignments/iana-ipv4-special-registry (what is globally reachable).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NEVER_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
        "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_NEVER_6 = tuple(
    IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "2620:4f:8000::/48")
)
_UNICAST_6 = IPv6Network("2000::/3")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_NAT64 = IPv6Network("64:ff9b::/96")
_MAPPED = (IPv6Network("::ffff:0:0/96"), IPv6Network("::/96"), IPv6Network("::ffff:0:0:0/96"))
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def is_public(text: str) -> bool:
    """Whether `text` is a global unicast address, and so is any IPv4 address hidden in it.

    Unreadable texts and addresses with a zone are not.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NEVER_4)
    if address.scope_id is not None:
        return False
    hidden = _hidden(address)
    if hidden is not None:
        return is_public(str(hidden)) and (
            address in _NAT64 or address in _SIX_TO_FOUR or _is_plain(address)
        )
    return _is_plain(address)


def _is_plain(address: IPv6Address) -> bool:
    return address in _UNICAST_6 and not any(address in network for network in _NEVER_6)


def _hidden(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address a translator or tunnel would reach through `address`; None when there is none."""
    number = int(address)
    if any(address in network for network in (_NAT64, *_MAPPED)):
        return IPv4Address(number & 0xFFFF_FFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFF_FFFF)
    if address in _TEREDO:
        return IPv4Address(~number & 0xFFFF_FFFF)
    if number >> 32 & 0xFFFF_FFFF in _ISATAP:
        return IPv4Address(number & 0xFFFF_FFFF)
    return None
