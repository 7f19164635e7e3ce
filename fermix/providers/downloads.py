"""Downloads a model file by plain HTTP in the client process; what was interrupted goes on where it was.

The first address is the owner's and reached exactly as written; where it redirects to another place,
only public addresses are, like everything that others name.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from fermix import __version__
from fermix.errors import (
    AddressRefused,
    ConnectionLost,
    DownloadFailed,
    ModelUnusable,
    RedirectRefused,
    Unreachable,
)
from fermix.net.address import Address, parse
from fermix.net.public import is_public
from fermix.providers.gguf import LEAST_BYTES, check_beginning
from fermix.providers.model_store import ModelStore, Origin, Progress, check_room, explain

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool

REDIRECTS = 5
ATTEMPTS = 6
"""Attempts in a row that brought nothing before it is given up."""
CONNECT_TIMEOUT_S = 15.0
SILENCE_S = 60.0
READ_BYTES = 256 * 1024
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class _Again(Exception):
    """What was received does not fit any more; begin at the first byte."""


class Download:
    """One model on its way from an address into the store."""

    def __init__(
        self,
        store: ModelStore,
        url: str,
        name: str,
        *,
        sha256: str | None,
        progress: Progress,
        silence_s: float = SILENCE_S,
        pause_s: Callable[[int], float] = lambda attempt: min(2.0**attempt, 30.0),
        is_allowed: Callable[[str], bool] = is_public,
    ) -> None:
        """`is_allowed` decides about addresses that a redirect leads to."""
        self._store = store
        self._url = url.partition("#")[0]
        self._first = parse(self._url)
        self._name = name
        self._sha256 = sha256
        self._progress = progress
        self._silence_s = silence_s
        self._pause_s = pause_s
        self._is_allowed = is_allowed
        self._part = store.part(name)
        self._is_answered = False
        """Whether the address answered at all; one that never did is more likely wrong than busy."""

    def run(self) -> Path:
        """The finished model's file.

        Contract: when it raises, or is interrupted, what was received stays for the next try, unless it
        can be of no use.
        Raises: DownloadFailed, ModelUnusable, AddressRefused, RedirectRefused, OwnerError.
        """
        try:
            with self._store.adding(self._name) as target:
                self._receive()
                self._store.put(self._part, target, sha256=self._sha256, progress=self._progress)
        except OSError as error:
            told = explain(error, self._part)
            if kept := self._size():
                told.message += f" {kept / 1_000_000:.1f} MB of the download are kept."
                told.hint = f"{told.hint}; to give them up: fermix models remove {self._name}"
            raise told from error
        return target

    def _receive(self) -> None:
        if self._store.origin(self._name).url != self._url:
            self._store.drop(self._name)
        failures = 0
        while True:
            before = self._size()
            try:
                self._attempt(before)
                return
            except _Again:
                self._store.drop(self._name)
                failures += 1
            except (ConnectionLost, Unreachable) as error:
                failures = 1 if self._size() > before else failures + 1
                if not self._is_answered and not before:
                    raise DownloadFailed(
                        error.message,
                        hint="Look whether the address is right, and whether this machine is online.",
                    ) from error
                if failures >= ATTEMPTS:
                    raise self._failed(error.message) from error
            if failures >= ATTEMPTS:
                raise self._failed(f"{self._first.origin} sends another file every time.")
            self._progress("retrying", self._size(), self._store.origin(self._name).total)
            time.sleep(self._pause_s(failures - 1))

    def _attempt(self, size: int) -> None:
        """Receive from `size` on to the end.

        Raises: _Again, ConnectionLost, Unreachable, DownloadFailed.
        """
        origin = self._store.origin(self._name)
        if size and size == origin.total:
            return  # killed between its last byte and its name
        headers = {"Range": f"bytes={size}-", "If-Range": origin.etag} if size and origin.etag else {}
        if size and not headers:
            raise _Again  # nothing tells whether it is still the same file
        with self._opened(headers) as response:
            total = self._accept(response, size, origin)
            with self._part.open("ab") as part:
                self._part.chmod(0o600)
                self._write(response, part.fileno(), size if response.status == 206 else 0, total)
        have = self._size()
        if total is not None and have != total:
            raise ConnectionLost(f"The connection ended after {have} of {total} bytes.")

    def _accept(self, response: BaseHTTPResponse, size: int, origin: Origin) -> int | None:
        """The whole file's size, None when the server does not say; the part is ready for what comes."""
        status = response.status
        self._is_answered = True
        if status in (412, 416):
            raise _Again
        if status in _TRANSIENT:
            raise Unreachable(f"{self._first.origin} answered {status}.")
        if status not in (200, 206):
            raise DownloadFailed(
                f"{self._url[:200]!r} was answered with {status} ({response.reason}).",
                hint="Look whether the address is right, and whether it needs no login.",
            )
        if response.headers.get("content-type", "").lower().startswith("text/html"):
            raise ModelUnusable(
                f"{self._url[:200]!r} is a web page; expected the file itself.",
                hint="Give the address of the file itself, which ends in .gguf",
            )
        length = response.headers.get("content-length", "")
        rest = int(length) if length.isdecimal() else None
        if status == 206:
            begin, total = _range_of(response.headers.get("content-range", ""))
            if begin != size or (origin.total is not None and total != origin.total):
                raise _Again
            check_room(self._part.parent, rest or 0)
            return total
        check_room(self._part.parent, rest or 0)
        self._part.unlink(missing_ok=True)
        etag = response.headers.get("etag", "") or response.headers.get("last-modified", "")
        # A weak tag does not promise the same bytes. Source: RFC 9110, section 13.1.5.
        etag = "" if etag.startswith("W/") else etag
        self._store.note(self._name, Origin(self._url, etag, rest))
        return rest

    def _write(self, response: BaseHTTPResponse, descriptor: int, size: int, total: int | None) -> None:
        is_new = size < LEAST_BYTES
        for piece in _pieces(response):
            _write_whole(descriptor, piece)
            size += len(piece)
            if is_new and size >= LEAST_BYTES:
                is_new = False
                try:
                    check_beginning(_head(self._part), self._name)
                except ModelUnusable:
                    self._store.drop(self._name)
                    raise
            self._progress("downloading", size, total)

    @contextlib.contextmanager
    def _opened(self, headers: dict[str, str]) -> Iterator[BaseHTTPResponse]:
        """The response behind the address and its redirects."""
        url, address, is_owners = self._url, self._first, True
        for _ in range(REDIRECTS + 1):
            with _request(address, headers, self._targets(address, is_owners), self._silence_s) as response:
                location = response.headers.get("location")
                if not (300 <= response.status < 400 and location):
                    yield response
                    return
            url = urljoin(url, location).partition("#")[0]
            following = parse(url)
            if address.scheme == "https" and following.scheme == "http":
                raise RedirectRefused(f"{address.origin} redirects from https to plain http.")
            is_owners = is_owners and following.origin == self._first.origin
            address = following
        raise RedirectRefused(f"More than {REDIRECTS} redirects; the last one led to {url[:200]!r}.")

    def _targets(self, address: Address, is_owners: bool) -> list[str]:
        """The owner's own host by its name; another only by addresses that are all public."""
        if is_owners:
            return [address.host]
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unreachable(f"The name {address.host!r} was not found.") from error
        texts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        refused = [text for text in texts if not self._is_allowed(text)]
        if refused:
            raise AddressRefused(
                f"{self._first.origin} redirects to {address.host!r}, which may not be reached: "
                f"{refused[0]} is not a public address.",
                hint="Give that address itself, if you mean it.",
            )
        return texts[:3]

    def _size(self) -> int:
        try:
            return self._part.stat().st_size
        except FileNotFoundError:
            return 0

    def _failed(self, message: str) -> DownloadFailed:
        kept = f" {size / 1_000_000:.1f} MB are kept." if (size := self._size()) else ""
        return DownloadFailed(
            f"{message}{kept}",
            hint=f"To go on: fermix models add {shlex.quote(self._url)} --name {self._name}",
        )


def name_of(url: str) -> str:
    """What a model from this address is called: the last word of its path."""
    last = parse(url.partition("#")[0]).path.partition("?")[0].rpartition("/")[2]
    return last.removesuffix(".gguf")


@contextlib.contextmanager
def _request(
    address: Address, headers: dict[str, str], targets: list[str], silence_s: float
) -> Iterator[BaseHTTPResponse]:
    """One GET; whatever breaks inside becomes ConnectionLost, what breaks before it Unreachable."""
    from urllib3.exceptions import HTTPError  # only a download needs it, and it takes 130 ms

    sent = {
        "Host": address.authority,
        "Accept-Encoding": "identity",
        "User-Agent": f"fermix/{__version__}",
        **headers,
    }
    path = address.path if address.path.startswith("/") else f"/{address.path}"
    error: Exception | None = None
    for target in targets:
        with contextlib.closing(_pool(address, target, silence_s)) as pool:
            try:
                response = pool.urlopen(
                    "GET", path, headers=sent, retries=False, redirect=False, preload_content=False
                )
            except (HTTPError, OSError) as failed:
                error = failed
                continue
            try:
                yield response
            except (HTTPError, TimeoutError, ConnectionError) as broken:
                raise ConnectionLost(f"The connection to {address.origin} broke.") from broken
            finally:
                response.close()
            return
    raise Unreachable(f"Cannot connect to {address.origin}: {_reason(error)}.") from error


def _pool(address: Address, target: str, silence_s: float) -> HTTPConnectionPool:
    import urllib3  # as above

    timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT_S, silence_s), read=silence_s)
    if address.scheme == "http":
        return urllib3.HTTPConnectionPool(target, address.port, timeout=timeout)
    from fermix.net.tls import tls_context

    return urllib3.HTTPSConnectionPool(
        target, address.port, timeout=timeout, ssl_context=tls_context(), server_hostname=address.host
    )


def _pieces(response: BaseHTTPResponse) -> Iterator[bytes]:
    while piece := response.read1(READ_BYTES):
        yield piece


def _write_whole(descriptor: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(descriptor, left) :]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)


def _range_of(text: str) -> tuple[int, int | None]:
    """First byte and whole size of a Content-Range; (-1, None) when it is none."""
    unit, _, rest = text.partition(" ")
    span, _, total = rest.partition("/")
    begin = span.partition("-")[0]
    if unit != "bytes" or not begin.isdecimal():
        return -1, None
    return int(begin), int(total) if total.isdecimal() else None


def _reason(error: BaseException | None) -> str:
    """One short line without names of classes."""
    while error is not None:
        if isinstance(error, TimeoutError):
            return "it does not answer"
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        inner = getattr(error, "reason", None) or error.__cause__ or error.__context__
        if not isinstance(inner, BaseException):
            break
        error = inner
    return "it does not speak HTTP as expected"
