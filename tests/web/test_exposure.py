"""Where fermix may listen: nowhere others reach it unencrypted, or without a token of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fermix.config.declare import section_of
from fermix.web.exposure import problem
from fermix.web.settings import HttpSettings

EVERYWHERE = "0.0.0.0"  # noqa: S104 (what is refused here)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate and its key."""
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "certificate.pem", folder / "key.pem"
    words = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=x -out {paths[0]}"
    subprocess.run(["openssl", *words.split(), "-keyout", str(paths[1])], check=True, capture_output=True)
    paths[1].chmod(0o600)
    return paths


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_nothing(host):
    assert problem(HttpSettings(host=host), device_tokens=0) is None


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.1", "2001:db8::1"])
def test_an_address_others_reach_needs_encryption_and_a_device_token(host, pair):
    chain, key = pair
    bare = HttpSettings(host=host)
    proxied = HttpSettings(host=host, proxies=("192.0.2.9",))
    encrypted = HttpSettings(host=host, tls_certificate=chain, tls_key=key)

    assert "unencrypted" in str(problem(bare, device_tokens=1))
    for settings in (proxied, encrypted):
        told = problem(settings, device_tokens=0)
        assert told is not None
        assert "fermix tokens create" in (told.hint or "")
        assert problem(settings, device_tokens=1) is None


def test_what_is_off_is_no_problem():
    assert problem(HttpSettings(host=EVERYWHERE, enabled=False), device_tokens=0) is None


def test_a_certificate_needs_its_key(pair):
    chain, key = pair

    assert "http.tls_key" in str(problem(HttpSettings(tls_certificate=chain), device_tokens=0))
    assert "http.tls_certificate" in str(problem(HttpSettings(tls_key=key), device_tokens=0))


def test_a_key_others_can_read_is_refused(pair, tmp_path):
    loose = tmp_path / "key.pem"
    loose.write_bytes(pair[1].read_bytes())
    loose.chmod(0o644)

    told = problem(HttpSettings(tls_certificate=pair[0], tls_key=loose), device_tokens=0)

    assert "0644" in str(told)
    assert told.hint == f"chmod 600 {loose}"


@pytest.mark.parametrize("content", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nxx\n"])
def test_what_is_no_certificate_is_named(pair, tmp_path, content):
    broken = tmp_path / "broken.pem"
    broken.write_bytes(content)

    told = problem(HttpSettings(tls_certificate=broken, tls_key=pair[1]), device_tokens=0)

    assert str(broken) in str(told)
    assert told.hint


def test_a_certificate_that_is_not_there_is_named(pair, tmp_path):
    told = problem(HttpSettings(tls_certificate=tmp_path / "none.pem", tls_key=pair[1]), device_tokens=0)

    assert "No such file" in str(told)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", "example.com"),
        ("host", ""),
        ("host", "1.2.3"),
        ("proxies", ("proxy.example",)),
        ("proxies", ("10.0.0.0/99",)),
    ],
)
def test_what_is_no_address_is_no_setting(name, value):
    declared = {each.name: each.declared for each in section_of(HttpSettings).settings}

    assert declared[name].check is not None
    assert declared[name].check(value)
