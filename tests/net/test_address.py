"""Base addresses are taken as they were written, or refused with a reason."""

import pytest

from fermix.errors import AddressRefused
from fermix.net.address import parse, parse_base


@pytest.mark.parametrize(
    ("url", "origin", "path", "authority"),
    [
        ("https://api.example.com/v1", "https://api.example.com:443", "/v1", "api.example.com"),
        ("https://api.example.com/v1/", "https://api.example.com:443", "/v1", "api.example.com"),
        ("HTTP://LocalHost:11434", "http://localhost:11434", "", "localhost:11434"),
        ("http://[::1]:8080/x", "http://[::1]:8080", "/x", "[::1]:8080"),
        ("https://bücher.example", "https://xn--bcher-kva.example:443", "", "xn--bcher-kva.example"),
    ],
)
def test_a_base_is_taken_apart(url: str, origin: str, path: str, authority: str) -> None:
    address = parse_base(url)
    assert (address.origin, address.path, address.authority) == (origin, path, authority)


@pytest.mark.parametrize(
    "url",
    [
        "", "api.example.com/v1", "ftp://host", "file:///etc/passwd", "https://", "https://user:hunter2@host/v1",
        "https://host:99999", "https://host/v1?key=1", "https://ho st/", "https://host/\r\nX: y", "http://[::1",
        "https://" + "ü" * 300,
    ],
)  # fmt: skip
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        parse_base(url)
    assert "hunter2" not in refused.value.message


def test_a_query_is_kept_where_it_is_allowed() -> None:
    assert parse("https://host/a?b=c#d").path == "/a?b=c"
