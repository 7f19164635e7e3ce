"""The one place where something happens to the world.

A tool asks for an effect; its target is resolved to what it really touches, the checks
decide on that, the effect is recorded, then done.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fermix.capabilities.turn import TurnFacts
from fermix.errors import ToolDenied, ToolFailed
from fermix.process import Command, CommandHost, CommandResult, Limits
from fermix.tasks import ThreadPool

FILE_TIMEOUT_S = 60.0
"""Longest one file effect may take; a dead network mount is given up after it."""
NEW_FILE_MODE = 0o644


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Read a part of a regular file."""

    path: Path
    offset_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Replace or create a regular file."""

    path: Path
    content: bytes


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a program and everything it starts."""

    argv: tuple[str, ...]
    cwd: Path
    timeout_s: float


Effect = ReadFile | WriteFile | RunCommand
Check = Callable[[Effect, TurnFacts], None]
"""Raises ToolDenied when the resolved effect must not happen for this turn."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes read and the size of the whole file."""

    content: bytes
    size_bytes: int


class Effects:
    """Resolves, checks, records and does effects."""

    def __init__(
        self,
        *,
        checks: Iterable[Check],
        record: Callable[[Effect, TurnFacts], None],
        commands: CommandHost,
        environment: Mapping[str, str],
        limits: Limits,
        pool: ThreadPool,
    ) -> None:
        self._checks = tuple(checks)
        self._record = record
        self._commands = commands
        self._environment = environment
        self._limits = limits
        self._pool = pool

    def read_file(
        self, path: str, turn: TurnFacts, *, offset_bytes: int = 0, limit_bytes: int = 256 * 1024
    ) -> FilePart:
        """A window of a regular file. Raises: ToolDenied, ToolFailed."""
        effect = ReadFile(self._resolve(path, turn), offset_bytes, limit_bytes)
        self._decide(effect, turn)
        return self._pool.run(lambda: _read(effect), timeout_s=FILE_TIMEOUT_S)

    def write_file(self, path: str, content: bytes, turn: TurnFacts) -> Path:
        """The file really written, whole or not at all. Raises: ToolDenied, ToolFailed."""
        effect = WriteFile(self._resolve(path, turn), content)
        self._decide(effect, turn)
        self._pool.run(lambda: _write(effect), timeout_s=FILE_TIMEOUT_S)
        return effect.path

    def run_command(
        self,
        argv: tuple[str, ...],
        turn: TurnFacts,
        *,
        timeout_s: float,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """How the command ended; nothing it started is left. Raises: ToolDenied, ToolFailed."""
        effect = RunCommand(argv, turn.cwd, min(timeout_s, turn.deadline.remaining_s()))
        if not self._pool.run(lambda: os.path.isdir(effect.cwd), timeout_s=FILE_TIMEOUT_S):  # noqa: PTH112 - never raises
            raise ToolFailed(f"There is no folder {str(effect.cwd)!r} to run the command in.")
        self._decide(effect, turn)
        command = Command(
            argv=effect.argv,
            cwd=effect.cwd,
            environment=self._environment,
            timeout_s=effect.timeout_s,
            limits=self._limits,
            standing=turn.standing,
        )
        return self._commands.run(command, turn.cancel, on_output)

    def _decide(self, effect: Effect, turn: TurnFacts) -> None:
        turn.cancel.check()
        for check in self._checks:
            check(effect, turn)
        self._record(effect, turn)

    def _resolve(self, path: str, turn: TurnFacts) -> Path:
        """Where the path really leads: links followed, `..` gone."""
        try:
            os.fsencode(path)
            wanted = turn.cwd / Path(path).expanduser()
        except (ValueError, RuntimeError) as error:  # half a character; the home of nobody
            raise ToolFailed(f"{path!r} is not a path: {error}.") from error
        if "\0" in path or not path:
            raise ToolFailed(f"{path!r} is not a path.")
        real = self._pool.run(lambda: Path(os.path.realpath(wanted)), timeout_s=FILE_TIMEOUT_S)
        if turn.file_root is not None and not real.is_relative_to(turn.file_root.resolve()):
            raise ToolDenied(f"{path!r} leads outside the folder this conversation may use.")
        return real


def keep_out_of_home(home: Path, workspace: Path) -> Check:
    """A check that keeps file tools away from fermix's own files, the workspace excepted."""
    home, workspace = home.resolve(), workspace.resolve()

    def check(effect: Effect, turn: TurnFacts) -> None:
        if isinstance(effect, RunCommand):
            return
        if effect.path.is_relative_to(home) and not effect.path.is_relative_to(workspace):
            raise ToolDenied(
                f"{str(effect.path)!r} belongs to fermix itself; tools may use {str(workspace)!r}."
            )

    return check


def keep_out_of_proc(effect: Effect, turn: TurnFacts) -> None:
    """A check that keeps file tools away from other processes' memory and environment."""
    if not isinstance(effect, RunCommand) and effect.path.is_relative_to("/proc"):
        raise ToolDenied(f"{str(effect.path)!r} is not a file on disk; file tools do not read /proc.")


def _read(effect: ReadFile) -> FilePart:
    # Asked before it is opened too, since opening a device can do something.
    # O_NOFOLLOW: the path is resolved already, a link that appears now is somebody's trick.
    # O_NONBLOCK: opening a pipe must not wait for its writer.
    try:
        _refuse_irregular(effect.path, effect.path.lstat())
        descriptor = os.open(effect.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ToolFailed(f"Cannot read {str(effect.path)!r}: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _refuse_irregular(effect.path, found)
        file.seek(effect.offset_bytes)
        return FilePart(file.read(effect.limit_bytes), found.st_size)


def _refuse_irregular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise ToolFailed(f"{str(path)!r} is {kind}.")


def _write(effect: WriteFile) -> None:
    target = effect.path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        before = _replaced(target)
        descriptor, name = tempfile.mkstemp(prefix=".fermix-", dir=target.parent)
        draft = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(effect.content)
                if before is not None and (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
                    with suppress(PermissionError):  # only root may give a file away
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                # permissions only: new content must not inherit set-user-id
                os.fchmod(descriptor, NEW_FILE_MODE if before is None else before.st_mode & 0o777)
                file.flush()
                os.fsync(descriptor)
            draft.replace(target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ToolFailed(f"Cannot write {str(target)!r}: {error.strerror}.") from error


def _replaced(target: Path) -> os.stat_result | None:
    """The file that is written over; None when the target is new."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return None
    _refuse_irregular(target, found)
    return found
