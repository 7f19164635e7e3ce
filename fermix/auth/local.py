"""`api-token`: the one token of the programs on this machine, in a file that only its owner can read."""

from __future__ import annotations

import errno
import logging
import os
import shlex
from pathlib import Path

from fermix.auth.files import Kept
from fermix.auth.token import SHAPE, new_token
from fermix.config.atomic import stage, sync_folder
from fermix.errors import ConfigError
from fermix.secret import Secret

log = logging.getLogger(__name__)


class LocalToken:
    """Made at the daemon's first start, and again whenever the file is gone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: Kept[Secret | None] = Kept(path, self._parse, None)

    def get(self) -> Secret | None:
        """The token; None when the file is not there.

        Raises: HomeUnsafe when others can read it, ConfigError when it cannot be used.
        """
        return self._kept.look()

    def make(self) -> None:
        """Write a fresh token unless there is one; whole, durable and private from its first byte.

        Raises: OSError when the disk refuses; then nothing is left behind.
        """
        staged = stage(self.path, f"{new_token().reveal()}\n".encode(), mode=0o600)
        try:
            # A link, not a rename: what somebody else has put there meanwhile is not replaced.
            os.link(staged, self.path, follow_symlinks=False)
        except FileExistsError:
            log.debug("Somebody else made %s", self.path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                raise
            staged.replace(self.path)  # a file system without second names
        finally:
            staged.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    def _parse(self, raw: bytes) -> Secret:
        text = raw.decode("ascii", "replace").strip()
        if not SHAPE.fullmatch(text):
            raise ConfigError(
                f"{self.path} holds no token. Remove it, and the daemon makes a new one.",
                hint=f"rm {shlex.quote(str(self.path))}",
            )
        return Secret(text)
