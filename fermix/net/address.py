"""An http(s) base address, taken apart and checked once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from fermix.errors import AddressRefused

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True)
class Address:
    """Scheme, host, port and path of an http(s) address."""

    scheme: str
    host: str
    port: int
    path: str
    """Path and query as sent, without a trailing slash when it is a base; may be empty."""

    @property
    def origin(self) -> str:
        """`scheme://host:port`, for messages and comparisons."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def authority(self) -> str:
        """The Host header's value."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_base(url: str) -> Address:
    """The address an owner wrote as the base of an API.

    Raises: AddressRefused when it is not a plain http(s) address.
    """
    address = parse(url)
    if "?" in address.path:
        raise AddressRefused(f"The address {url!r} has a query; expected a base like 'https://host/v1'.")
    return Address(address.scheme, address.host, address.port, address.path.rstrip("/"))


def parse(url: str) -> Address:
    """Any http(s) address.

    Raises: AddressRefused for other schemes, user names in it, control characters or no host.
    """
    shown = repr(url[:200])
    if _UNPRINTABLE.search(url):
        raise AddressRefused(f"The address {shown} has blanks or control characters in it.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused(f"The address {shown} cannot be read: {error}.") from error
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise AddressRefused(f"The address {shown} must start with 'http://' or 'https://'.")
    if not parts.hostname:
        raise AddressRefused(f"The address {shown} names no host.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("The address carries a user name or password; store it as a secret instead.")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return Address(scheme, _ascii_host(parts.hostname), port or _DEFAULT_PORTS[scheme], path)


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise AddressRefused(f"The host {host[:200]!r} is not a valid name.") from error
