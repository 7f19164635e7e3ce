"""Whether fermix may listen where the settings say: others can reach an address that is not loopback."""

from __future__ import annotations

import ipaddress
import shlex
import ssl
import stat
from pathlib import Path

from fermix.errors import ConfigError
from fermix.web.settings import HttpSettings


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


def problem(settings: HttpSettings, *, device_tokens: int) -> ConfigError | None:
    """Why fermix does not listen with these settings; None when it does.

    device_tokens: how many device tokens there are; the api-token does not count from elsewhere.
    """
    if not settings.enabled:
        return None
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        missing, given = (
            ("tls_key", "tls_certificate") if settings.tls_key is None else ("tls_certificate", "tls_key")
        )
        return ConfigError(
            f"'http.{given}' is set and 'http.{missing}' is not; HTTPS needs both.",
            hint=f"fermix config set http.{missing} /PATH/TO/FILE.pem",
        )
    if settings.tls_certificate is not None and settings.tls_key is not None:
        unusable = _tls_problem(settings.tls_certificate, settings.tls_key)
        if unusable is not None:
            return unusable
    if is_loopback(settings.host):
        return None
    if settings.tls_certificate is None and not settings.proxies:
        return ConfigError(
            f"'http.host' is {settings.host!r}: others can reach it, and tokens would cross the network "
            "unencrypted. Expected TLS (http.tls_certificate and http.tls_key), or the addresses of the "
            "reverse proxies that add it (http.proxies), or a loopback address.",
            hint="fermix config set http.host 127.0.0.1, or "
            "fermix config set http.tls_certificate /PATH/TO/CERTIFICATE.pem",
        )
    if device_tokens == 0:
        return ConfigError(
            f"'http.host' is {settings.host!r}: others can reach it, and there is no device token they "
            "could prove themselves with.",
            hint="fermix tokens create NAME, or fermix config set http.host 127.0.0.1",
        )
    return None


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """What HTTPS is served with. Raises: ssl.SSLError, OSError when the files cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # No password is asked for: a daemon has nobody to ask.
    context.load_cert_chain(certificate, key, password=lambda: "")
    return context


def _tls_problem(certificate: Path, key: Path) -> ConfigError | None:
    name = shlex.quote(str(key))
    try:
        mode = stat.S_IMODE(key.stat().st_mode)
        if mode & 0o007:
            return ConfigError(
                f"{key} has mode {mode:04o}: others can read the key of HTTPS. Expected 0600.",
                hint=f"chmod 600 {name}",
            )
        tls_context(certificate, key)
    except ssl.SSLError as error:
        return ConfigError(
            f"{certificate} and {key} make no certificate and key: {error.reason or error}.",
            hint="fermix config set http.tls_certificate /PATH/TO/CERTIFICATE.pem",
        )
    except OSError as error:
        return ConfigError(
            f"Cannot use {error.filename or f'{certificate} or {key}'}: {error.strerror}.",
            hint=f"ls -l {shlex.quote(str(certificate))} {name}",
        )
    return None
