"""ULIDs: 26 characters that sort by the millisecond they were made in.

Source: https://github.com/ulid/spec (48 bits of milliseconds, 80 random bits, Crockford base 32).
"""

from __future__ import annotations

import os

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_id(now_ms: int) -> str:
    """A fresh ULID for something that happened at `now_ms`."""
    return _written((now_ms & ((1 << 48) - 1)) << 80 | int.from_bytes(os.urandom(10)))


def ulid_of(digest: bytes) -> str:
    """An id that is the same for the same digest (16 bytes or more); it sorts by no time."""
    return _written(int.from_bytes(digest[:16]))


def is_id(text: str) -> bool:
    """Whether `text` has the shape of a ULID."""
    return len(text) == 26 and text[0] in "01234567" and all(char in _ALPHABET for char in text)


def _written(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
