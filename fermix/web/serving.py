"""Serves one connection: its requests one after the other, each within its limits, every refusal in JSON.

gunicorn parses and frames; what differs from its own loop: nothing of a refused body is read, a slow or
silent client costs a place only as long as nobody else wants it, and the application learns when the last
byte of an answer was handed over.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec
from gunicorn.config import Config
from gunicorn.http import errors
from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import Response, create

from fermix.errors import DeadlineExceeded
from fermix.tasks import Deadline, at_most, sleep, time_limit
from fermix.web.link import KEY, Link
from fermix.web.places import Places
from fermix.web.refusals import Refused, body_of
from fermix.web.settings import HttpSettings
from fermix.web.tls import Tls

log = logging.getLogger(__name__)

LINGER_S = 1.0
"""How long a client that is still sending gets to read why it was refused."""
LINGER_BYTES = 262_144
TURN_BYTES = 4096
"""How much of a body is read before others go on: each byte of it may be a chunk of its own."""
_REASONS = {400: "Bad Request", 414: "URI Too Long", 417: "Expectation Failed", 431: "Headers Too Large"}

Application = Callable[[Any, Callable[..., Any]], Iterable[bytes]]


class Address(Protocol):
    """A listener, as far as it names itself."""

    def getsockname(self) -> Any: ...


class Serving:
    """Every connection of one listener."""

    def __init__(
        self,
        application: Application,
        *,
        config: Config,
        settings: Callable[[], HttpSettings],
        tls: Tls | None = None,
    ) -> None:
        """`tls` None serves plain HTTP."""
        self._application = application
        self._config = config
        self._settings = settings
        self._tls = tls
        self._places = Places(lambda: settings().connections)

    def handle(self, listener: Address, client: socket.socket, address: Any) -> None:
        """Serve a connection to its end."""
        settings = self._settings()
        self._places.take()
        try:
            client.settimeout(settings.send_timeout_s)
            if self._tls is not None:
                client = self._tls.wrap(client)
                self._shake_hands(client, settings.idle_s)
            self._serve(listener, client, address)
            self._leave(client)
        except OSError as error:  # of TLS too
            log.debug("A client is gone: %s", error)
        except Exception:  # the boundary of a connection: what was sent of an answer must not look whole
            log.exception("An answer was cut off")
        finally:
            self._places.give_back(client)
            client.close()

    def _shake_hands(self, client: Any, limit_s: float) -> None:
        """Raises: OSError when there is no TLS with this client, or not in time."""
        try:
            with self._places.awaiting(client), time_limit(limit_s, "A handshake"):
                client.do_handshake()
        except DeadlineExceeded as error:
            raise TimeoutError(error.message) from error

    def _serve(self, listener: Address, client: socket.socket, address: Any) -> None:
        parser = RequestParser(self._config, client, address)
        is_kept = True
        while is_kept:
            request = self._next(parser, client)
            if request is None:
                return
            is_kept = self._answer(request, client, address, listener)
            sleep(0)  # whoever sends many at once lets the others go first after each

    def _next(self, parser: RequestParser, client: socket.socket) -> Request | None:
        """The next request's head; None when none came, or none that makes sense."""
        try:
            with self._places.awaiting(client), at_most(self._settings().idle_s):
                return next(parser)
        except StopIteration:
            return None
        except errors.NoMoreData as error:
            if error.buf:  # a head that was begun; without, the client had nothing more to ask
                self._refuse(client, Refused(400, "request_cut", "The request ended within its head."))
            return None
        except errors.ParseException as error:
            self._refuse(client, _refusal(error))
            return None

    def _answer(self, request: Request, client: socket.socket, address: Any, listener: Address) -> bool:
        """Answer one request; whether the connection may carry another one."""
        parsed: Any = request  # what is set below is not in gunicorn's stubs
        asks_first, parsed._expected_100_continue = parsed._expected_100_continue, False
        response, environ = create(
            request, client, address, listener.getsockname(), self._config, response_class=_Response
        )
        link = Link(client, (address[0], address[1]), Deadline.after(self._settings().request_timeout_s))
        environ[KEY] = link
        environ["wsgi.input"] = _Input(request.body, client, self._places, is_awaited=not asks_first)
        pieces = self._application(environ, response.start_response)
        try:
            for piece in pieces:
                link.was_there = link.is_there()
                with self._places.awaiting(client):
                    response.write(piece)
            response.close()
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
        if request.method != "HEAD":
            link.sent()
        return not response.should_close()

    def _refuse(self, client: socket.socket, refused: Refused) -> None:
        raw = msgspec.json.encode(body_of(refused))
        head = (
            f"HTTP/1.1 {refused.status} {_REASONS.get(refused.status, 'Bad Request')}\r\n"
            "Connection: close\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
            f"X-Content-Type-Options: nosniff\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        client.sendall(head.encode() + raw)

    def _leave(self, client: socket.socket) -> None:
        """Close so that the client can still read the answer: what it goes on sending must not reset it.

        Source: RFC 9112 section 9.6.
        """
        client.shutdown(socket.SHUT_WR)
        left = LINGER_BYTES
        with self._places.awaiting(client), at_most(LINGER_S):
            while left > 0 and (data := client.recv(65_536)):
                left -= len(data)


class _Response(Response):
    """gunicorn's, without its name, and never kept open over a body that was not read."""

    def default_headers(self) -> list[str]:
        if not _is_read(self.req):
            self.force_close()
        return [line for line in super().default_headers() if not line.startswith("Server:")]


class _Input:
    """A body as the application reads it; while it does not come, its connection counts as idle."""

    def __init__(self, body: Any, client: socket.socket, places: Places, *, is_awaited: bool) -> None:
        """`is_awaited` False: the client waits to be told that its body is wanted (RFC 9110, 10.1.1)."""
        self._body = body
        self._client = client
        self._places = places
        self._is_awaited = is_awaited

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        if not self._is_awaited:
            self._is_awaited = True
            self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces: list[bytes] = []
        while size > 0 and (piece := self._read(min(size, TURN_BYTES))):
            pieces.append(piece)
            size -= len(piece)
            sleep(0)
        return b"".join(pieces)

    def _read(self, size: int) -> bytes:
        with self._places.awaiting(self._client):
            piece: bytes = self._body.read(size)
        return piece


def _is_read(request: Request) -> bool:
    """Whether the next request begins where reading stopped."""
    body: Any = request.body
    if body is None or body.failed or body.buf.tell():
        return False
    reader = body.reader
    if isinstance(reader, LengthReader):
        return reader.length == 0
    return isinstance(reader, ChunkedReader) and reader.parser is None and not reader.buf.tell()


def _refusal(error: errors.ParseException) -> Refused:
    """What a request that cannot be parsed is told; always 4xx, whatever gunicorn would say."""
    told = str(error)[:200]
    if isinstance(error, errors.LimitRequestLine):
        return Refused(414, "url_too_long", f"The request line is too long: {told}.")
    if isinstance(error, errors.LimitRequestHeaders):
        return Refused(431, "headers_too_large", f"The headers are too many or too long: {told}.")
    if isinstance(error, errors.ExpectationFailed):
        return Refused(417, "expectation_failed", f"{told}; only 100-continue is known.")
    return Refused(400, "request_invalid", f"The request is no HTTP that can be served: {told}.")
