"""gunicorn's log messages as lines of our own log."""

from __future__ import annotations

import logging

from gunicorn.config import Config


class ServerLog:
    """What gunicorn takes for its logger; access lines are left out, events carry what matters."""

    access_log_enabled = False

    def __init__(self, cfg: Config) -> None:
        self.cfg = cfg
        log = logging.getLogger("fermix.daemon.http")
        self.debug, self.info, self.warning = log.debug, log.info, log.warning
        self.error, self.critical, self.exception, self.log = (
            log.error,
            log.critical,
            log.exception,
            log.log,
        )

    def setup(self, cfg: Config) -> None:
        self.cfg = cfg

    def access(self, *_: object) -> None:
        """Nothing: see the class."""

    def reopen_files(self) -> None:
        """Nothing: `telemetry.logs` follows rotations by itself."""

    def close_on_exec(self) -> None:
        """Nothing: every descriptor of ours is."""
