"""Opens a file that is only a file: what else may stand in its place neither hangs nor fools us."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import BinaryIO

from fermix.errors import ConfigError


def open_regular(path: Path) -> BinaryIO:
    """The file, open for reading; symbolic links are followed.

    Raises: ConfigError when it is a folder, a pipe or a device; OSError when it cannot be opened.
    """
    # O_NONBLOCK: opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigError(f"{path} is not a regular file.", hint=f"ls -ld {shlex.quote(str(path))}")
    return os.fdopen(descriptor, "rb")
