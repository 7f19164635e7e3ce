"""What the owner can say about HTTP."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from fermix.config import section, setting


def _not_loopback(host: str) -> str | None:
    """What was expected when `host` is no loopback address; None when it is one."""
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    return None if is_loopback else "a loopback address such as 127.0.0.1"


@section("http")
@dataclass(frozen=True)
class HttpSettings:
    """[http] section."""

    enabled: bool = setting(True, "Whether fermix listens for HTTP at all.", needs_restart=True)
    host: str = setting(
        "127.0.0.1", "Address to listen on; loopback only.", check=_not_loopback, needs_restart=True
    )
    port: int = setting(
        4030,
        "TCP port to listen on; 0 takes any free one.",
        minimum=0,
        maximum=65_535,
        needs_restart=True,
    )
    names: tuple[str, ...] = setting((), "Further host names under which a reverse proxy reaches fermix.")
    connections: int = setting(
        256, "Connections open at once; more wait.", unit="connections", minimum=4, maximum=10_000
    )
    idle_s: int = setting(
        5, "Longest a connection may take to send a request's head.", unit="s", minimum=1, maximum=600
    )
    body_limit_bytes: int = setting(65_536, "Longest body of a request.", unit="bytes", minimum=1_024)
