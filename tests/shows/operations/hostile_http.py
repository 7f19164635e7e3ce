"""HTTP requests that mean harm: each must be refused in words, and cost nobody else anything."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

SLOW_CLIENTS = 300
"""More than there are places."""
CHUNK = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
GIGABYTE_CHUNKS = 1024
READ_TIMEOUT_S = 40.0


@dataclass(frozen=True, slots=True)
class Target:
    """A daemon to attack."""

    address: str
    token: str


@dataclass(frozen=True, slots=True)
class Hostile:
    """One request, and the statuses that refuse it."""

    name: str
    data: bytes
    statuses: frozenset[int]
    is_cut: bool = False
    """The client sends no more after it, and says so."""


@dataclass
class Book:
    """All of them, for one daemon."""

    host: str
    token: str
    requests: list[Hostile] = field(default_factory=list)

    def add(self, name: str, data: bytes, *statuses: int, is_cut: bool = False) -> None:
        self.requests.append(Hostile(name, data, frozenset(statuses), is_cut))

    def head(
        self, *lines: str, method: str = "GET", path: str = "/v1/models", host: str | None = None
    ) -> bytes:
        """A request's head, with the right token."""
        named = (f"Host: {self.host if host is None else host}",)
        token = (f"Authorization: Bearer {self.token}",)
        return "\r\n".join([f"{method} {path} HTTP/1.1", *named, *token, *lines, "", ""]).encode("latin-1")

    def post(
        self, body: bytes, *lines: str, path: str = "/message", length: int | str | None = None
    ) -> bytes:
        """A POST of JSON, with the right token."""
        told = len(body) if length is None else length
        more = ("Content-Type: application/json", f"Content-Length: {told}", *lines)
        return self.head(*more, method="POST", path=path) + body

    def chunked(self, body: bytes, *lines: str) -> bytes:
        """The same in chunks that may be none."""
        more = ("Content-Type: application/json", "Transfer-Encoding: chunked", *lines)
        return self.head(*more, method="POST", path="/message") + body


def book_of(target: Target) -> list[Hostile]:
    """Every kind of request."""
    book = Book(target.address, target.token)
    _add_names(book)
    _add_tokens(book)
    _add_lines(book)
    _add_lengths(book)
    _add_chunks(book)
    _add_bodies(book)
    return book.requests


def _add_names(book: Book) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "x" * 3000, "", "["):
        book.add(f"Host {host[:30]!r}", book.head(host=host), 403, 400)
    book.add("no Host", b"GET /v1/models HTTP/1.1\r\n\r\n", 403, 400)
    book.add("two Hosts", book.head("Host: evil.example"), 400, 403)
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", "\xff"):
        book.add(f"Origin {origin!r}", book.head(f"Origin: {origin}"), 403)
    book.add("absolute URL", book.head(path="http://evil.example/v1/models"), 400, 403, 404)
    book.add("CONNECT", book.head(method="CONNECT", path="evil.example:443"), 400, 404, 405)


def _add_tokens(book: Book) -> None:
    host = f"Host: {book.host}\r\n"
    for text in ("Bearer x", "Bearer", "Basic eDp5", "Bearer " + "\xff" * 200, "Bearer " + "a" * 5000):
        data = f"GET /v1/models HTTP/1.1\r\n{host}Authorization: {text}\r\n\r\n".encode("latin-1")
        book.add(f"Authorization {text[:12]!r}", data, 401, 429)
    book.add("no token", f"GET /sessions HTTP/1.1\r\n{host}\r\n".encode(), 401)
    book.add("token in the query", book.head(path=f"/sessions?token={book.token}"), 400)
    book.add("token in a cookie", book.head(f"Cookie: token={book.token}"), 400)
    book.add("two tokens", book.head(f"Authorization: Bearer {'x' * 40}"), 400, 401, 429)


def _add_lines(book: Book) -> None:
    book.add("TLS", bytes.fromhex("1603010200010001fc0303") + b"\0" * 300, 400, is_cut=True)
    book.add("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, 505)
    book.add("HTTP/9.9", b"GET / HTTP/9.9\r\n\r\n", 400, 505)
    book.add("a frame of the socket", b'\0\0\0\x20{"v":1,"id":1,"method":"status"}', 400, is_cut=True)
    book.add("a long URL", book.head(path="/" + "x" * 100_000), 400, 414)
    book.add("a long method", book.head(method="X" * 5000), 400, 414)
    book.add("a long header", book.head("X-Long: " + "x" * 200_000), 400, 431)
    book.add("many headers", book.head(*(f"X-{number}: y" for number in range(5000))), 400, 431)
    book.add("path of folders", book.head(path="/../../etc/passwd"), 400, 404)
    book.add("path of dots", book.head(path="/sessions/%2e%2e%2f%2e%2e/messages"), 400, 404)
    book.add("path that is no UTF-8", book.head(path="/sessions/%ff%fe/messages"), 400)
    book.add("NUL in a path", book.head(path="/sessions/%00/messages"), 400)
    book.add("NUL in a header", book.head("X-Nul: a\0b"), 400)
    book.add("blank in a header's name", book.head("X Blank: y"), 400)
    book.add("folded header", book.head("X-Folded: a\r\n b"), 400)
    book.add("line feeds only", book.head().replace(b"\r\n", b"\n"), 400, is_cut=True)
    book.add("unknown method", book.head(method="PURGE"), 405)
    book.add("unknown path", book.head(path="/nothing"), 404)
    book.add("unknown parameter", book.head(path="/sessions?x=1"), 400)
    book.add("parameter twice", book.head(path="/sessions?limit=1&limit=2"), 400)
    book.add("many parameters", book.head(path="/sessions?" + "&".join(f"a{n}=1" for n in range(500))), 400)


def _add_lengths(book: Book) -> None:
    for length in ("-1", "+5", "0x10", "5, 6", "1e3", "५", "9" * 40):
        data = book.post(b"{}", length=length.encode().decode("latin-1"))
        book.add(f"Content-Length {length[:8]}", data, 400, 413)
    book.add("two lengths", book.post(b"{}", "Content-Length: 20"), 400)
    book.add("no length", book.head("Content-Type: application/json", method="POST", path="/message"), 411)
    book.add("a terabyte is told", book.post(b"{", length=10**12), 413)
    book.add("cut body", book.post(b'{"text":"x"', length=100), 400, is_cut=True)


def _add_chunks(book: Book) -> None:
    smuggled = b"0\r\n\r\nGET /sessions HTTP/1.1\r\n\r\n"
    book.add("both lengths", book.chunked(smuggled, f"Content-Length: {len(smuggled)}"), 400)
    for coding in (
        "\x0bchunked",
        "xchunked",
        "chunked, identity",
        "gzip, chunked",
        "chunked\x00",
        "identity",
    ):
        head = book.head(
            "Content-Type: application/json",
            f"Transfer-Encoding: {coding}",
            "Content-Length: 6",
            method="POST",
            path="/message",
        )
        book.add(f"Transfer-Encoding {coding!r}", head + b"0\r\n\r\nX", 400, 501)
    for body in (
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"-5\r\n{}\r\n0\r\n\r\n",
        b"0x5\r\nabcde\r\n0\r\n\r\n",
        b"2\r\n{}XX0\r\n\r\n",
    ):
        book.add(f"chunk {body[:4]!r}", book.chunked(body), 400, is_cut=True)
    book.add("endless chunk size", book.chunked(b"1" * 100_000), 400, 413, is_cut=True)
    book.add(
        "long chunk extension",
        book.chunked(b"2;" + b"x" * 200_000 + b"\r\n{}\r\n0\r\n\r\n"),
        400,
        is_cut=True,
    )
    book.add("cut chunk", book.chunked(b"ffff\r\n{"), 400, is_cut=True)
    book.add(
        "a chunk of exabytes", book.chunked(b"ffffffffffffffff\r\n" + b"x" * 100), 400, 413, is_cut=True
    )


def _add_bodies(book: Book) -> None:
    for name, body in {
        "no JSON": b"hello",
        "invalid UTF-8": b'{"text":"\xff\xfe"}',
        "depth 100,000": b'{"text":' + b"[" * 100_000,
        "a huge number": b'{"text":' + b"9" * 5000 + b"}",
        "a list": b"[]",
        "nothing": b"",
        "lone surrogate": b'{"text":"\\ud800"}',
        "many keys": json.dumps({f"k{number}": 1 for number in range(20_000)}).encode(),
        "wrong kinds": b'{"text":{},"attachments":7}',
        "unknown session name": b'{"text":"x","session":"a\\nb"}',
    }.items():
        book.add(name, book.post(body), 400)
        book.add(f"{name} for /v1", book.post(body, path="/v1/chat/completions"), 400)
    text = b'{"text":"x"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        head = book.head(
            f"Content-Type: {kind}", f"Content-Length: {len(text)}", method="POST", path="/message"
        )
        book.add(f"Content-Type {kind[:20]!r}", head + text, 415)
    book.add("compressed", book.post(b"\x1f\x8b\x08\0\0\0\0\0", "Content-Encoding: gzip"), 400, 415)
    book.add("a body over the limit", book.post(b'{"text":"' + b"x" * 3_000_000 + b'"}'), 413)
    picture = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}}
    asked = {"model": "fermix", "messages": [{"role": "user", "content": [picture]}]}
    book.add("an address to fetch", book.post(json.dumps(asked).encode(), path="/v1/chat/completions"), 400)


def attack(target: Target, hostile: Hostile) -> str:
    """`413 body_too_large`, or how the daemon failed to refuse."""
    with connected(target) as client:
        try:
            client.sendall(hostile.data)
            if hostile.is_cut:
                client.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent; the answer is there
        try:
            return read_refusal(client, hostile.statuses)
        except (ConnectionResetError, TimeoutError) as error:
            return f"FAILED: {type(error).__name__}"


def read_refusal(client: socket.socket, statuses: frozenset[int]) -> str:
    """The first answer's status and code."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := client.recv(65_536)):
            return f"FAILED: closed after {data[:40]!r}"
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].split(b":")[1])
    while len(body) < length and (piece := client.recv(65_536)):
        body += piece
    if status not in statuses:
        return f"FAILED: {status} {body[:80]!r}"
    return f"{status} {json.loads(body[:length])['error']['code']}"


def send_a_gigabyte(target: Target) -> tuple[str, int]:
    """What a body of 1 GB in chunks is told, and how many MB of it were sent until then."""
    head = (
        f"POST /message HTTP/1.1\r\nHost: {target.address}\r\nAuthorization: Bearer {target.token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    sent = 0
    with connected(target) as client:
        client.sendall(head.encode())
        try:
            for _ in range(GIGABYTE_CHUNKS):
                client.sendall(CHUNK)
                sent += 1
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_refusal(client, frozenset({413})), sent


def connected(target: Target) -> socket.socket:
    host, _, port = target.address.partition(":")
    client = socket.create_connection((host, int(port)), timeout=READ_TIMEOUT_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


class GoodClient(threading.Thread):
    """Asks for the models all the time and notes how long that took."""

    def __init__(self, target: Target) -> None:
        super().__init__(daemon=True)
        self.target = target
        self.ending = threading.Event()
        self.longest_s = 0.0
        self.served = 0
        self.error: BaseException | None = None
        self._request = (
            f"GET /v1/models HTTP/1.1\r\nHost: {target.address}\r\nAuthorization: Bearer {target.token}\r\n"
            "Connection: close\r\n\r\n"
        ).encode()

    def run(self) -> None:
        try:
            while not self.ending.wait(0.05):
                began = time.monotonic()
                with connected(self.target) as client:
                    client.sendall(self._request)
                    data = b""
                    while piece := client.recv(65_536):
                        data += piece
                assert data.startswith(b"HTTP/1.1 200 ") and b'"fermix"' in data, data[:200]
                self.longest_s = max(self.longest_s, time.monotonic() - began)
                self.served += 1
        except BaseException as error:  # a thread's boundary: the main thread raises it
            self.error = error


class SlowClients(threading.Thread):
    """Hold connections open and send a byte now and then: of a head, of a body, or nothing at all."""

    def __init__(self, target: Target) -> None:
        super().__init__(daemon=True)
        self.target = target
        self.ending = threading.Event()
        self.opened = 0
        self._book = Book(target.address, target.token)
        self._clients: list[socket.socket] = []

    def run(self) -> None:
        while not self.ending.wait(0.5):
            self._clients = [client for client in self._clients if self._drip(client)]
            while len(self._clients) < SLOW_CLIENTS:
                self._clients.append(self._open())
        for client in self._clients:
            client.close()

    def _open(self) -> socket.socket:
        client = connected(self.target)
        begin = (b"", b"GET /v1/mo", self._book.post(b"{", length=1000))[self.opened % 3]
        client.sendall(begin)
        client.setblocking(False)
        self.opened += 1
        return client

    def _drip(self, client: socket.socket) -> bool:
        """Whether the daemon still bears with it."""
        try:
            client.send(b"x")
            is_open = client.recv(1) != b""
        except BlockingIOError:
            is_open = True
        except OSError:
            is_open = False
        if not is_open:
            client.close()
        return is_open


def attack_all(target: Target, requests: int) -> Counter[str]:
    """What was answered to each kind, and how often."""
    book = book_of(target)
    answers: Counter[str] = Counter()
    for number in range(requests):
        hostile = book[number % len(book)]
        answers[f"{hostile.name}: {attack(target, hostile)}"] += 1
    return answers
