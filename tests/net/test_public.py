"""Only global unicast addresses count as public, also those hidden in IPv6."""

import pytest

from fermix.net.public import is_public


@pytest.mark.parametrize(
    "text", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101", "2002:101:101::1"]
)
def test_the_public_internet_is_public(text: str) -> None:
    assert is_public(text)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "203.0.113.9",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1", "3fff::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1", "2002:a00:1::1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe", "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1",
        "100::1", "fec0::1", "5f00::1", "2001:10::1", "1.1.1.1.", "localhost", "", "0x7f.1",
    ],
)  # fmt: skip
def test_everything_else_is_not(text: str) -> None:
    assert not is_public(text)
