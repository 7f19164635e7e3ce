"""`service.env`: the variables a service gets, written once and then the owner's to edit.

Source: systemd.exec(5), "EnvironmentFile="; of its quoting only double quotes are used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "FERMIX_RUNTIME_DIR",
)
"""What a service manager does not know and a daemon or its commands may need. No secret is copied."""

_SIGNED = "# As fermix wrote it: "
_HEAD = """\
# Variables of the fermix service, one NAME=value a line. Yours to edit: from then on it stays as it is.
# They count after: fermix restart. Secrets are better kept with: fermix secrets set NAME
"""


def environment_text(environment: Mapping[str, str]) -> str:
    """The file as a first install writes it, of the environment of whoever installs."""
    lines = [
        f"{name}={_quoted(environment[name])}\n"
        for name in PASSED_ON
        if environment.get(name) and environment[name].isprintable()
    ]
    body = _HEAD + "".join(lines)
    return f"{body}{_SIGNED}{_digest(body)}\n"


def is_untouched(text: str) -> bool:
    """Whether it still is as fermix wrote it."""
    body, mark, digest = text.rpartition(_SIGNED)
    return bool(mark) and digest.strip() == _digest(body)


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    return f'"{escaped}"'
