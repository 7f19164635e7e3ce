"""The log file: rotates, is shared by several processes, and never takes the daemon down."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from pathlib import Path

from fermix.telemetry.lines import LineFormatter
from fermix.telemetry.settings import LogSettings
from fermix.telemetry.terminal import Terminal

_RETRY_S = 1.0
"""How long a file that cannot be opened is left alone."""


def start_logs(path: Path, settings: LogSettings, *, is_terminal: bool) -> LogFile:
    """Send every logger's lines to `path`, and to stderr too when a person watches there."""
    handler = LogFile(path, settings)
    handler.setFormatter(LineFormatter())
    handlers: list[logging.Handler] = [handler]
    if is_terminal:
        handlers.append(Terminal())
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(settings.level.upper())
    logging.captureWarnings(True)
    if not handler.is_open:
        logging.getLogger(__name__).error("The log file '%s' cannot be written", path)
    return handler


def change_logs(handler: LogFile, settings: LogSettings) -> None:
    """Go by these settings from the next line on."""
    handler.settings = settings
    logging.getLogger().setLevel(settings.level.upper())


class LogFile(logging.Handler):
    """Appends to a file that several processes write and any of them rotates.

    The descriptor `fileno()` keeps its number for ever and always leads to the present file, so that
    faulthandler can write to it from C. No lock is taken: a line is one write to an append-only file,
    and threads, greenlets and signal-like contexts may all log.
    """

    def __init__(self, path: Path, settings: LogSettings) -> None:
        super().__init__()
        self._path = path
        self.settings = settings
        self._fd = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._identity: tuple[int, int] | None = None
        """Device and inode of the open file; None while there is none."""
        self._retry_at_s = 0.0
        self._lost = 0
        self._turn = [object()]
        """Holds one token; who pops it may reopen or rotate (list.pop is atomic, also between threads)."""
        self._attach()

    @property
    def is_open(self) -> bool:
        return self._identity is not None

    def fileno(self) -> int:
        """A descriptor of the present file; /dev/null while it cannot be opened."""
        return self._fd

    def present_fd(self) -> int:
        """As `fileno`, after looking whether another process has rotated the file."""
        self._prepare()
        return self._fd

    def reopen(self) -> None:
        """Open the file anew: a forked process needs a description of its own."""
        self._identity = None
        self._retry_at_s = 0.0
        self._attach()

    def handle(self, record: logging.LogRecord) -> bool:
        """As logging.Handler's, without its lock."""
        is_wanted = bool(self.filter(record))
        if is_wanted:
            self.emit(record)
        return is_wanted

    def emit(self, record: logging.LogRecord) -> None:
        line = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
        self._prepare()
        try:
            if not self.is_open:
                raise OSError("no log file")
            if self._lost:
                os.write(self._fd, f"({self._lost} lines could not be written here)\n".encode())
                self._lost = 0
            os.write(self._fd, line)
        except OSError:  # full disk, removed folder: the daemon goes on without this line
            self._lost += 1

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)
        super().close()

    def _prepare(self) -> None:
        """Follow a rotation by another process, rotate when it is this one's turn."""
        try:
            token = self._turn.pop()
        except IndexError:
            return  # another thread is at it
        try:
            if self._identity is None or self._identity != self._identity_of_path():
                self._attach()
            if self.is_open and os.fstat(self._fd).st_size >= self.settings.size_bytes:
                self._rotate()
        except OSError:  # see emit
            pass
        finally:
            self._turn.append(token)

    def _identity_of_path(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 (once per line: no Path objects)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _attach(self) -> None:
        now_s = time.monotonic()
        if self._identity is None and now_s < self._retry_at_s:
            return
        try:
            opened = self._open()
        except OSError:
            self._identity = None
            self._retry_at_s = now_s + _RETRY_S
            return
        found = os.fstat(opened)
        os.dup2(opened, self._fd, inheritable=False)
        os.close(opened)
        self._identity = (found.st_dev, found.st_ino)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            os.mkdir(self._path.parent, 0o700)  # noqa: PTH102 (as in `_identity_of_path`)
            return os.open(self._path, flags, 0o600)

    def _rotate(self) -> None:
        """Put the full file aside, unless another process did so while we waited for the lock."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if self._identity == self._identity_of_path():
                aside = [self._path.with_name(f"{self._path.name}.{n}") for n in range(self.settings.files)]
                for older, newer in zip(aside[:1:-1], aside[-2:0:-1], strict=True):
                    with contextlib.suppress(FileNotFoundError):
                        newer.replace(older)
                if self.settings.files > 1:
                    self._path.replace(aside[1])
                else:
                    self._path.unlink()
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._attach()
