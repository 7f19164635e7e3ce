"""The certificates outgoing connections are checked against."""

from __future__ import annotations

import ssl
from functools import lru_cache


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """The one verifying context, with certifi's authorities held in memory.

    Read once: a frozen program's unpacked files may be deleted while it runs, and HTTPS must
    go on working. Takes about 30 ms the first time.
    """
    import certifi  # imported here: the client process never needs it

    context = ssl.create_default_context(cadata=certifi.contents())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
