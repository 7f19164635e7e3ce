"""The public door: addresses that models, messages, pages and redirects name.

Each is resolved once, must be global unicast only, and the connection goes to exactly the
address that was checked; every redirect is checked again.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

from fermix.errors import AddressRefused, RedirectRefused, Unreachable
from fermix.net.address import Address, parse
from fermix.net.interrupt import interruptible
from fermix.net.public import is_public
from fermix.net.response import Response
from fermix.net.sending import connections, send_on
from fermix.tasks import Cancel, Deadline

REDIRECTS = 5
LIMIT_BYTES = 10 * 1024 * 1024
_CONNECT_TIMEOUT_S = 10.0
_IDLE_TIMEOUT_S = 30.0
_ADDRESSES_TRIED = 3
_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_BODY_HEADERS = frozenset({"content-type", "content-length"})

Resolve = Callable[[str, int], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether an address may be reached, for the record."""

    origin: str
    addresses: tuple[str, ...]
    is_allowed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A whole response."""

    url: str
    """Where it came from in the end."""
    status: int
    headers: Mapping[str, str]
    body: bytes


def resolve(host: str, port: int) -> list[str]:
    """Every address of a host, in the order to try them.

    Raises: OSError when it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PublicDoor:
    """Fetches what others named, from the public internet and nowhere else.

    Proxies named in the environment are ignored: they would see what the check has not.
    """

    def __init__(
        self,
        *,
        on_decision: Callable[[Decision], None] = lambda decision: None,
        resolve: Resolve = resolve,
        is_allowed: Callable[[str], bool] = is_public,
    ) -> None:
        """`resolve` and `is_allowed` are what tests replace to stay on loopback."""
        self._on_decision = on_decision
        self._resolve = resolve
        self._is_allowed = is_allowed

    def fetch(
        self,
        url: str,
        *,
        cancel: Cancel,
        deadline: Deadline,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        limit_bytes: int = LIMIT_BYTES,
    ) -> Fetched:
        """The response behind `url`, whatever its status, after at most five redirects.

        Raises: AddressRefused, RedirectRefused, Unreachable, ConnectionLost, ResponseTooLarge,
        Cancelled, DeadlineExceeded.
        """
        sent = dict(headers or {})
        for _ in range(REDIRECTS + 1):
            address = parse(url)
            with self._open(address, method, body, sent, cancel, deadline, limit_bytes) as response:
                location = response.headers.get("location")
                if not (300 <= response.status < 400 and location):
                    answer = response.read_all()
                    return Fetched(url=url, status=response.status, headers=response.headers, body=answer)
                following = urljoin(url, location).partition("#")[0]
                target = parse(following)
                if address.scheme == "https" and target.scheme == "http":
                    raise RedirectRefused(f"{address.origin} redirects from https to plain http.")
                if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                    method, body = "GET", None
                    sent = {name: text for name, text in sent.items() if name.lower() not in _BODY_HEADERS}
                if target.origin != address.origin:
                    sent = {
                        name: text for name, text in sent.items() if name.lower() not in _PRIVATE_HEADERS
                    }
            url = following
        raise RedirectRefused(f"More than {REDIRECTS} redirects; the last one led to {url[:200]!r}.")

    def _open(
        self,
        address: Address,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str],
        cancel: Cancel,
        deadline: Deadline,
        limit_bytes: int,
    ) -> Response:
        error: Unreachable | None = None
        for checked in self._checked(address, cancel, deadline)[:_ADDRESSES_TRIED]:
            pool = connections(address, to=checked, connect_timeout_s=_CONNECT_TIMEOUT_S, kept=1)
            try:
                raw = send_on(
                    pool,
                    method,
                    address.path if address.path.startswith("/") else f"/{address.path}",
                    body,
                    headers={**headers, "Host": address.authority},
                    origin=address.origin,
                    cancel=cancel,
                    wait_s=min(_IDLE_TIMEOUT_S, deadline.remaining_s()),
                )
            except Unreachable as unreachable:
                pool.close()
                error = unreachable
                continue
            except BaseException:
                pool.close()
                raise
            return Response(
                raw,
                cancel=cancel,
                deadline=deadline,
                idle_timeout_s=_IDLE_TIMEOUT_S,
                limit_bytes=limit_bytes,
                on_close=pool.close,
            )
        raise error or Unreachable(f"{address.host} has no address.")

    def _checked(self, address: Address, cancel: Cancel, deadline: Deadline) -> list[str]:
        """The host's addresses, all of them allowed."""
        try:
            with interruptible(
                cancel, min(_IDLE_TIMEOUT_S, deadline.remaining_s()), what="The name look-up"
            ):
                found = self._resolve(address.host, address.port)
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"The name {address.host!r} was not found.") from error
        # One private address among public ones is how a name is turned against us: none is used then.
        refused = [text for text in found if not self._is_allowed(text)]
        reason = f"{refused[0]} is not a public address" if refused else "public"
        self._on_decision(
            Decision(origin=address.origin, addresses=tuple(found), is_allowed=not refused, reason=reason)
        )
        if refused:
            raise AddressRefused(f"{address.host!r} may not be reached: {reason}.")
        return found
