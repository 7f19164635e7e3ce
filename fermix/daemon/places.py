"""Files a running daemon is found by, put back when somebody removes them.

A lock, a socket and a pid file are only good under their names: without the socket nobody reaches
the daemon, without the lock a second one could start beside it. Each gets a second name in a hidden
folder of the home; the same file, so that lock and listener stay what they are.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)


class Places:
    """The second names of one daemon's files."""

    def __init__(self, folder: Path, paths: Iterable[Path]) -> None:
        """Gives each of `paths` a second name in `folder`; a disk that knows no links gives none."""
        self._folder = folder
        self._kept: dict[Path, Path] = {}
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            for path in paths:
                second = folder / path.name
                second.unlink(missing_ok=True)  # of a daemon that was killed
                second.hardlink_to(path)
                self._kept[path] = second
        except OSError as error:
            log.warning("What is removed from the home is not put back: %s", error)

    def look(self) -> None:
        """Put back what is missing; a file that somebody put in its place stays."""
        for path, second in self._kept.items():
            if not os.path.lexists(path):
                with suppress(OSError):  # the whole home is gone or moved
                    path.hardlink_to(second)
                    log.warning("'%s' was removed while fermix runs; it is put back", path)

    def close(self) -> None:
        """Remove the second names."""
        for second in self._kept.values():
            with suppress(OSError):
                second.unlink()
        with suppress(OSError):
            self._folder.rmdir()
        self._kept.clear()
