"""Lets requests in: Host and Origin first, then the token, before anything of a body is read."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fermix.auth.token import SHAPE
from fermix.auth.tokens import Grant, Tokens
from fermix.clock import Clock
from fermix.web.attempts import FailedTokens
from fermix.web.peers import Peer
from fermix.web.refusals import Refused
from fermix.web.settings import HttpSettings

log = logging.getLogger(__name__)

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKEN_PARAMETERS = frozenset({"token", "access_token", "api_key", "apikey", "api-key", "auth", "key"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s\[\]:@/?#\\]+)(:[0-9]{0,5})?")
_PLAIN_NAME = re.compile(r"[a-z0-9.:_-]+")
_HOW = "Send it as the header: Authorization: Bearer TOKEN"


def check_names(headers: Mapping[str, str], settings: HttpSettings, own_address: str = "") -> None:
    """Raises: Refused unless Host, and Origin if there is one, are names of this very server.

    A page of another site can reach loopback through DNS rebinding or plain cross-site requests: the
    first shows in Host, the second in Origin. `own_address` is the one the client really connected to,
    which no name that was rebound can be.
    """
    owners = {name.lower() for name in settings.names}
    names = _LOOPBACK_NAMES | {settings.host.lower()} | owners
    if own_address:
        names |= {own_address}
    asked = _place("http", headers.get("host", ""))
    if asked is None or asked.name not in names:
        name = asked.name if asked is not None else headers.get("host", "")[:253]
        raise Refused(
            403,
            "host_refused",
            f"No host named {name!r} here; expected {', '.join(sorted(names))}.",
            hint=f"To be reached under it: fermix config set http.names '[\"{name}\"]'"
            if asked is not None and _PLAIN_NAME.fullmatch(name)
            else None,
        )
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, headers.get("host", ""), owners):
        raise Refused(403, "origin_refused", "Requests from pages of other sites are refused.")


def check_way(peer: Peer, settings: HttpSettings) -> None:
    """Raises: Refused when a token would cross the network unencrypted: without TLS all but proxies."""
    if peer.is_foreign and settings.tls_certificate is None:
        raise Refused(
            403,
            "proxy_expected",
            "Without HTTPS only this machine and the proxies in http.proxies are served.",
        )


def check_no_token_in(raw_uri: str, cookies: str) -> None:
    """Raises: Refused when a token stands where logs, histories and other sites get to see it."""
    query = raw_uri.partition("?")[2]
    named = {name.lower() for name, _ in parse_qsl(query, keep_blank_values=True, max_num_fields=None)}
    if named & _TOKEN_PARAMETERS or SHAPE.search(raw_uri):
        raise Refused(400, "token_in_url", "A token has no place in a URL, which logs keep.", hint=_HOW)
    if SHAPE.search(cookies):
        raise Refused(
            400,
            "token_in_cookie",
            "A token has no place in a cookie, which browsers send unasked.",
            hint=_HOW,
        )


class Doorkeeper:
    """Checks tokens and counts the wrong ones."""

    def __init__(self, clock: Clock) -> None:
        self._failed = FailedTokens(clock)

    def identify(
        self, authorization: str | None, peer: Peer, tokens: Tokens, settings: HttpSettings
    ) -> Grant | None:
        """Whose token came along; None when none did. Raises: Refused for a wrong one."""
        if authorization is None:
            return None
        scheme, _, presented = authorization.strip().partition(" ")
        if scheme.lower() != "bearer":
            # What was sent is not said again: without its scheme the token itself stands here.
            raise self._wrong(peer, settings, "Only the scheme Bearer is known. " + _HOW + ".")
        grant = tokens.find(presented.strip(), is_local=peer.is_local)
        if grant is None:
            raise self._wrong(
                peer, settings, "This token is wrong, was revoked or does not count from here."
            )
        return grant

    def _wrong(self, peer: Peer, settings: HttpSettings, message: str) -> Refused:
        failures = self._failed.add(peer.address)
        if failures <= settings.failed_tokens_per_minute:
            log.info("A wrong token from %s", peer.address)
            return Refused(401, "token_wrong", message, hint="fermix tokens create NAME")
        if failures == settings.failed_tokens_per_minute + 1:
            log.warning("Too many wrong tokens from %s; more of this minute are not logged", peer.address)
        wait_s = self._failed.wait_s(peer.address)
        return Refused(
            429,
            "too_many_wrong_tokens",
            f"More than {settings.failed_tokens_per_minute} wrong tokens in a minute; wait {wait_s} s.",
            headers={"Retry-After": str(wait_s)},
        )


def token_missing() -> Refused:
    """What is answered to a request that shows no token and needs one."""
    return Refused(
        401,
        "token_missing",
        f"This needs a token. {_HOW}",
        hint="Here it is in the file api-token of the home; elsewhere: fermix tokens create NAME",
    )


class _Place(NamedTuple):
    """Where a Host header or an origin points."""

    name: str
    port: int


def _is_own(origin: str, host: str, owners: Collection[str]) -> bool:
    """Whether a page of this origin comes from where it sends its request, so from this very server.

    Another port is another program. Only names from the settings count with any: a proxy may stand before
    them, and pass on another Host.
    """
    scheme, colon, rest = origin.partition("://")
    page = _place(scheme, rest) if colon and scheme in _DEFAULT_PORTS else None
    return page is not None and (page.name in owners or page == _place(scheme, host))


def _place(scheme: str, authority: str) -> _Place | None:
    """`host` or `host:port`, as browsers write it; None for anything else, even if `urlsplit` reads it.

    Source: RFC 9110 section 7.2 (Host), RFC 6454 section 7 (Origin).
    """
    if not _AUTHORITY.fullmatch(authority):
        return None
    try:
        url = urlsplit(f"//{authority}")
        return _Place((url.hostname or "")[:253], url.port or _DEFAULT_PORTS[scheme])
    except ValueError:
        return None
