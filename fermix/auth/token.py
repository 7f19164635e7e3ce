"""What a token looks like, how it is made and how it is compared."""

from __future__ import annotations

import hashlib
import re
import secrets

from fermix.secret import Secret

PREFIX = "fx_"
RANDOM_BYTES = 32
SHAPE = re.compile(r"fx_[A-Za-z0-9_-]{43}")
"""What to look for where no token may stand: URLs, cookies, logs."""


def new_token() -> Secret:
    """A fresh token; nobody guesses 256 random bits."""
    return Secret(PREFIX + secrets.token_urlsafe(RANDOM_BYTES))


def digest_of(token: str) -> bytes:
    """What is kept of a token. Plain SHA-256: there is no dictionary of random 256-bit values to try."""
    return hashlib.sha256(token.encode(errors="replace")).digest()
