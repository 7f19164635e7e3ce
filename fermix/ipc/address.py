"""The address of a Unix socket, also where its path is too long for the kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST_PATH_BYTES = 107
"""Source: unix(7): `sun_path` holds 108 bytes, the last one is the closing zero."""


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """What to `bind` or `connect` to for `path`; good only inside the `with` block.

    A long path is reached through a descriptor of its folder, so that only the
    file's own name counts.

    Raises: FileNotFoundError, NotADirectoryError when the folder of a long path is missing.
    """
    if len(os.fsencode(path)) <= _LONGEST_PATH_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
