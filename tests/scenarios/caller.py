"""A client of the daemon's HTTP API, in the plain words of `http.client`."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.bot import Bot


class Caller:
    """Talks to a bot's daemon with one token."""

    def __init__(self, bot: Bot, token: str | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        """`token` None is the local programs' one."""
        self.address = str(bot.status()["http"])
        self.token = token or (bot.home / "api-token").read_text().strip()
        self.tls = tls

    def open(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A request's answer, its body not yet read."""
        link = (
            http.client.HTTPSConnection(self.address, timeout=30, context=self.tls)
            if self.tls
            else http.client.HTTPConnection(self.address, timeout=30)
        )
        sent = {"Authorization": f"Bearer {self.token}"}
        raw = None
        if body is not None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        link.request(method, path, raw, {**sent, **headers})
        return link, link.getresponse()

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON."""
        link, answer = self.open(method, path, body, **headers)
        try:
            return answer.status, json.loads(answer.read())
        finally:
            link.close()

    def text(self, path: str) -> str:
        """The body of what is at `path`."""
        link, answer = self.open("GET", path)
        try:
            return answer.read().decode()
        finally:
            link.close()

    @contextmanager
    def events(
        self, body: object, *, after: str | None = None
    ) -> Iterator[Iterator[tuple[str | None, str, Any]]]:
        """Id, name and data of a message's events as they come; ends when the stream does."""
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = after
        link, answer = self.open("POST", "/message", body, **headers)
        try:
            if answer.status != 200:
                raise ConnectionRefusedError(answer.read().decode())
            yield read_events(answer)
        finally:
            link.close()


def read_events(answer: http.client.HTTPResponse) -> Iterator[tuple[str | None, str, Any]]:
    """Each whole event; one that was cut off is none."""
    fields: dict[str, str] = {}
    while True:
        try:
            line = answer.readline().decode()
        except (http.client.HTTPException, OSError):
            return
        if not line.endswith("\n"):
            return
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields.get("id"), fields["event"], json.loads(fields["data"])
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
