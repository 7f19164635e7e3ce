"""An issuer as data: where one signs in there, and how its tokens are read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who signed in, as far as the tokens say."""

    id: str | None = None
    """What requests name the account by; None when they need not."""
    label: str | None = None
    """A mail address or name, for the owner's eyes; None when the tokens tell none."""
    plan: str | None = None
    """What was subscribed to; None when the tokens do not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePaths:
    """Where a sign-in with a code begins, is asked about, and where its person goes."""

    begin: str
    poll: str
    page: str
    redirect: str
    """What the exchange names as its redirect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSpec:
    """What is the same for everybody who signs in there; paths stand behind `base_url`."""

    base_url: str
    client_id: str
    """Of a public client: there is no secret to keep."""
    scope: str
    authorize_path: str = "/oauth/authorize"
    exchange_path: str = "/oauth/token"
    revoke_path: str = "/oauth/revoke"
    redirect_path: str
    redirect_ports: tuple[int, ...]
    """Ports of this machine the issuer sends browsers back to, the first choice first; 0 is any."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """More of what the authorize address carries."""
    device: DevicePaths | None = None
    """None where it offers no sign-in with a code."""
    account_of: Callable[[Mapping[str, Any]], Account] = field(default=lambda claims: Account())
    """The account in a token's claims."""

    def at(self, url: str | None) -> IssuerSpec:
        """The same issuer at another address; None leaves it where it is."""
        return replace(self, base_url=url) if url else self


def claims_of(token: str) -> Mapping[str, Any]:
    """What a JSON web token says; empty when it is none.

    The signature is not looked at: the token came from its issuer, over a connection that proved it.
    Source: https://datatracker.ietf.org/doc/html/rfc7519#section-3 (three parts, base64url, JSON object).
    """
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = msgspec.json.decode(raw)
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
