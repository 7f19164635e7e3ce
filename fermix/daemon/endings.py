"""How the daemon ends when it cannot start: its exit statuses, and its last words."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from fermix.errors import ConfigError, ProviderError, SchemaNewer, StoreCorrupt
from fermix.paths import Home
from fermix.setup.service.systemd import UNREPAIRABLE
from fermix.telemetry.logs import LogFile
from fermix.telemetry.terminal import tell

__all__ = ["BOOT_FAILED", "FAILED", "UNREPAIRABLE", "last_words", "status_of"]

log = logging.getLogger(__name__)

FAILED = 1
"""Exit status of a worker or daemon for which another start may do better."""

BOOT_FAILED = 3
"""Exit status of a worker that could not start."""

_LASTING = (ConfigError, ProviderError, SchemaNewer, StoreCorrupt)


def status_of(error: Exception, *, otherwise: int = FAILED) -> int:
    """The exit status that tells a supervisor whether starting again makes sense."""
    return UNREPAIRABLE if isinstance(error, _LASTING) else otherwise


def last_words(
    home: Home,
    environment: Mapping[str, str],
    message: str,
    hint: str | None,
    *,
    surprise: Exception | None = None,
) -> None:
    """Why it cannot start, to whoever started it and to the log, if that was open already.

    surprise: an error nobody meant to raise; the log shows where it came from.
    Below a service manager stderr is a journal that not everybody may read. `fermix start` reads the
    log then, so the words stand there too.
    """
    if any(isinstance(handler, LogFile) for handler in logging.getLogger().handlers):
        log.error("Cannot start: %s", message, exc_info=surprise)
    told = f"fermix: {message}"
    tell(told, hint)
    if "INVOCATION_ID" in environment:  # Source: systemd.exec(5), "Environment Variables Set or Propagated"
        _append(home, f"{told}\n" + (f"  {hint}\n" if hint else ""))


def _append(home: Home, text: str) -> None:
    try:
        if home.root.stat().st_uid != os.geteuid():
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(home.log, flags, 0o600)
    except OSError:  # no home, no log, a full disk: stderr has it
        return
    try:
        os.write(fd, text.encode("utf-8", "replace"))
    except OSError:
        return
    finally:
        os.close(fd)
