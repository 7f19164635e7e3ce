"""What the owner can say about HTTP."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from fermix.config import section, setting
from fermix.web.peers import network_of


def _not_an_address(host: str) -> str | None:
    """What was expected when `host` is no address to listen on; None when it is one."""
    try:
        ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return "an IP address of this machine such as 127.0.0.1, or localhost"
    return None


def _not_networks(proxies: tuple[str, ...]) -> str | None:
    """What was expected when one of `proxies` is no address; None when all are."""
    if all(network_of(proxy) is not None for proxy in proxies):
        return None
    return "a list of IP addresses or networks such as 127.0.0.1 or 10.0.0.0/24"


@section("http")
@dataclass(frozen=True)
class HttpSettings:
    """[http] section."""

    enabled: bool = setting(True, "Whether fermix listens for HTTP at all.", needs_restart=True)
    host: str = setting(
        "127.0.0.1",
        "Address to listen on; one that others can reach needs TLS or proxies, and a device token.",
        check=_not_an_address,
        needs_restart=True,
    )
    port: int = setting(
        4030,
        "TCP port to listen on; 0 takes any free one.",
        minimum=0,
        maximum=65_535,
        needs_restart=True,
    )
    tls_certificate: Path | None = setting(
        None,
        "Certificate chain (PEM) to serve HTTPS with; read again when the file changes.",
        needs_restart=True,
    )
    tls_key: Path | None = setting(
        None, "Private key (PEM) of tls_certificate, readable by its owner alone.", needs_restart=True
    )
    proxies: tuple[str, ...] = setting(
        (),
        "Addresses or networks of reverse proxies, whose X-Forwarded-For is believed.",
        check=_not_networks,
    )
    names: tuple[str, ...] = setting((), "Further host names under which clients may ask for fermix.")
    connections: int = setting(
        256,
        "Connections open at once; a newcomer takes the place of one that asks for nothing.",
        unit="connections",
        minimum=4,
        maximum=10_000,
    )
    streams: int = setting(
        64, "Answers that may be waited for at once.", unit="answers", minimum=1, maximum=10_000
    )
    idle_s: int = setting(
        5, "Longest a connection may take to send a request's head.", unit="s", minimum=1, maximum=600
    )
    request_timeout_s: float = setting(
        30.0, "Longest a request's body may take to come.", unit="s", minimum=0.1, maximum=3_600.0
    )
    send_timeout_s: float = setting(
        30.0,
        "Longest a client may take nothing of its answer before it is hung up on.",
        unit="s",
        minimum=0.1,
        maximum=3_600.0,
    )
    keep_alive_s: float = setting(
        15.0,
        "How often a stream with nothing to say sends a comment, so that nothing in between closes it.",
        unit="s",
        minimum=0.1,
        maximum=600.0,
    )
    body_limit_bytes: int = setting(
        1_048_576, "Longest body of a request.", unit="bytes", minimum=1_024, maximum=67_108_864
    )
    upload_limit_bytes: int = setting(
        67_108_864, "Longest body of an upload.", unit="bytes", minimum=1_024, maximum=67_108_864
    )
    failed_tokens_per_minute: int = setting(
        10,
        "Wrong tokens one address may try in a minute before it is told to wait.",
        unit="tokens",
        minimum=1,
        maximum=10_000,
    )
