"""The public door: checked once, connected to exactly what was checked, every hop again."""

import socket
from collections.abc import Callable

import pytest

from fermix.errors import AddressRefused, RedirectRefused, ResponseTooLarge, Unreachable
from fermix.net.guard import Decision, Fetched, PublicDoor
from fermix.tasks import Cancel, Deadline

Serve = Callable[..., "RawServer"]  # noqa: F821  (the fixture's class)


def reply(status: str, body: bytes = b"", **headers: str) -> Callable[[socket.socket, bytes], None]:
    def answer(connection: socket.socket, head: bytes) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {text}" for name, text in headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    return answer


def door(names: dict[str, list[str]], decisions: list[Decision] | None = None) -> PublicDoor:
    """A door for which 127.0.0.1 stands for the public internet, and 127.0.0.2 for a private host."""

    def resolve(host: str, port: int) -> list[str]:
        if host not in names:
            raise OSError
        return names[host]

    return PublicDoor(
        resolve=resolve,
        is_allowed=lambda text: text == "127.0.0.1",
        on_decision=(decisions if decisions is not None else []).append,
    )


def fetch(door: PublicDoor, url: str, **more: object) -> Fetched:
    return door.fetch(url, cancel=Cancel(), deadline=Deadline.after(5), **more)


def test_the_connection_goes_to_the_checked_address_under_the_hosts_name(serve: Serve) -> None:
    server = serve(reply("200 OK", b"hello"))
    decisions: list[Decision] = []
    got = fetch(door({"pub.example": ["127.0.0.1"]}, decisions), f"http://pub.example:{server.port}/a?b=c")
    assert (got.status, got.body) == (200, b"hello")
    assert server.heads[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert f"Host: pub.example:{server.port}\r\n".encode() in server.heads[0]
    assert [decision.is_allowed for decision in decisions] == [True]


@pytest.mark.parametrize("addresses", [["127.0.0.2"], ["127.0.0.1", "127.0.0.2"]])
def test_a_name_with_any_private_address_is_refused(serve: Serve, addresses: list[str]) -> None:
    server = serve(reply("200 OK"))
    decisions: list[Decision] = []
    with pytest.raises(AddressRefused, match=r"127\.0\.0\.2 is not a public address"):
        fetch(door({"evil.example": addresses}, decisions), f"http://evil.example:{server.port}/")
    assert server.connections == 0
    assert not decisions[0].is_allowed


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/", "http://localhost/"],
)
def test_every_spelling_of_loopback_is_refused(url: str) -> None:
    with pytest.raises((AddressRefused, Unreachable)):
        PublicDoor().fetch(url, cancel=Cancel(), deadline=Deadline.after(5))


def test_a_redirect_to_a_private_host_is_refused(serve: Serve) -> None:
    private = serve(reply("200 OK", b"secret"))
    public = serve(reply("302 Found", Location=f"http://inside.example:{private.port}/"))
    names = {"pub.example": ["127.0.0.1"], "inside.example": ["127.0.0.2"]}
    with pytest.raises(AddressRefused, match="inside"):
        fetch(door(names), f"http://pub.example:{public.port}/")
    assert private.connections == 0


def test_a_redirect_to_another_host_loses_credentials(serve: Serve) -> None:
    last = serve(reply("200 OK", b"end"))
    first = serve(reply("301 Moved", Location=f"http://b.example:{last.port}/x"))
    names = {"a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"]}
    got = fetch(door(names), f"http://a.example:{first.port}/", headers={"Authorization": "k", "X-Y": "z"})
    assert (got.url, got.body) == (f"http://b.example:{last.port}/x", b"end")
    assert b"Authorization: k" in first.heads[0]
    assert b"Authorization" not in last.heads[0] and b"X-Y: z" in last.heads[0]


def test_endless_redirects_end(serve: Serve) -> None:
    server = serve(reply("302 Found", Location="/again"))
    with pytest.raises(RedirectRefused, match="More than 5"):
        fetch(door({"a.example": ["127.0.0.1"]}), f"http://a.example:{server.port}/")


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://x/", "http://a b/"])
def test_a_redirect_to_something_else_than_http_is_refused(serve: Serve, location: str) -> None:
    server = serve(reply("302 Found", Location=location))
    with pytest.raises((AddressRefused, Unreachable)):
        fetch(door({"a.example": ["127.0.0.1"]}), f"http://a.example:{server.port}/")


def test_a_large_page_is_dropped(serve: Serve) -> None:
    server = serve(reply("200 OK", b"x" * 100_000))
    with pytest.raises(ResponseTooLarge):
        fetch(door({"a.example": ["127.0.0.1"]}), f"http://a.example:{server.port}/", limit_bytes=1000)


def test_the_next_address_is_tried_when_one_does_not_answer(serve: Serve) -> None:
    server = serve(reply("200 OK", b"hello"))
    both = PublicDoor(resolve=lambda host, port: ["127.0.0.3", "127.0.0.1"], is_allowed=lambda text: True)
    assert fetch(both, f"http://a.example:{server.port}/").body == b"hello"
