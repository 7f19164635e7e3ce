"""Waits on this machine for the browser that comes back from a sign-in.

Source: https://datatracker.ietf.org/doc/html/rfc8252#section-7.3 (loopback redirect).
"""

from __future__ import annotations

import hmac
import html
import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qs, urlsplit

from gevent.event import Event

from fermix.errors import SignInFailed
from fermix.tasks import Cancel, Deadline, TaskGroup

log = logging.getLogger(__name__)

_HEAD_BYTES = 16_384
_READ_S = 10.0
_AT_ONCE = 16
_ACCEPT_S = 0.5
_PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>fermix</title>
<p style="font:1.2em sans-serif;margin:3em">{words}</p></html>"""


@dataclass(frozen=True, slots=True)
class _Came:
    """What the browser brought."""

    code: str
    error: str


class Loopback:
    """A listener for one sign-in. Use as a context manager; it listens on 127.0.0.1 alone."""

    def __init__(self, ports: Sequence[int], path: str, *, state: str) -> None:
        """Raises: SignInFailed when none of the ports is free."""
        self._path = path
        self._state = state
        self._socket = _listen(ports)
        self.port = int(self._socket.getsockname()[1])
        self._tasks = TaskGroup("sign-in")
        self._came: _Came | None = None
        self._has_come = Event()

    @property
    def redirect(self) -> str:
        """Where the issuer sends the browser."""
        return f"http://localhost:{self.port}{self._path}"

    def __enter__(self) -> Loopback:
        self._tasks.start(self._accept, name="accept")
        return self

    def __exit__(self, *_: object) -> None:
        self._tasks.stop(timeout_s=1.0)
        self._socket.close()

    def code(self, deadline: Deadline, cancel: Cancel) -> str:
        """The code the browser brought.

        Raises: SignInFailed when the person or the issuer said no, or nobody came in time; Cancelled.
        """
        forget = cancel.on_set(self._has_come.set)
        try:
            self._has_come.wait(deadline.remaining_s())
        finally:
            forget()
        if self._came is None:
            cancel.check()
            raise SignInFailed("Nobody finished the sign-in in time.", hint="fermix auth login")
        self._tasks.join(1.0)  # the page that says so is still on its way to the browser
        if not self._came.code:
            raise SignInFailed(f"The sign-in was refused: {self._came.error!r}.")
        return self._came.code

    def _accept(self) -> None:
        self._socket.settimeout(_ACCEPT_S)
        while not self._has_come.is_set():
            try:
                client, _ = self._socket.accept()
            except TimeoutError:
                continue
            if len(self._tasks) > _AT_ONCE:
                client.close()
                continue
            # Each on its own: browsers open connections they then say nothing on.
            self._tasks.start(partial(self._serve, client), name="browser")

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                client.settimeout(_READ_S)
                status, words = self._answered(_head(client))
                page = _PAGE.format(words=html.escape(words)).encode()
                client.sendall(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(page)}\r\nCache-Control: no-store\r\n"
                    "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
                    + page
                )
        except OSError as error:
            log.debug("A browser is gone: %s", error)
        finally:
            if self._came is not None:
                self._has_come.set()

    def _answered(self, head: str) -> tuple[str, str]:
        """Status and words for a request; a good one is noted."""
        lines = head.split("\r\n")
        method, _, target = lines[0].partition(" ")
        host = next((line.partition(":")[2].strip() for line in lines if line[:5].lower() == "host:"), "")
        # A page elsewhere whose name was made to point here must not bring codes.
        if method != "GET" or host not in (f"localhost:{self.port}", f"127.0.0.1:{self.port}"):
            return "400 Bad Request", "This address only takes a browser back from a sign-in."
        try:
            parts = urlsplit(target.partition(" ")[0])
        except ValueError:  # `//[`: half an address
            return "400 Bad Request", "This address only takes a browser back from a sign-in."
        if parts.path != self._path:
            return "404 Not Found", "This address only takes a browser back from a sign-in."
        query = parse_qs(parts.query)
        if not hmac.compare_digest(_first(query, "state").encode(), self._state.encode()):
            return "400 Bad Request", "This belongs to another sign-in. Begin again in the terminal."
        code, error = _first(query, "code"), _first(query, "error_description") or _first(query, "error")
        if self._came is None:
            self._came = _Came(code, (error or "no code came")[:200])
        if not code:
            return "200 OK", "The sign-in was refused. You can close this window."
        return "200 OK", "You are signed in. You can close this window and go back to the terminal."


def _listen(ports: Sequence[int]) -> socket.socket:
    for port in ports:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(_AT_ONCE)
            return listener
        except OSError:
            listener.close()
    named = " and ".join(map(str, ports))
    raise SignInFailed(
        f"The ports {named}, to which the browser would come back, are in use.",
        hint="fermix auth login --device",
    )


def _head(client: socket.socket) -> str:
    raw = b""
    while b"\r\n\r\n" not in raw and len(raw) < _HEAD_BYTES:
        piece = client.recv(4096)
        if not piece:
            raise ConnectionError("it said nothing")
        raw += piece
    return raw.decode("latin-1")


def _first(query: dict[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]
