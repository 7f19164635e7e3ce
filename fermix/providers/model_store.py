"""The model files of the home: put in whole or not at all, taken out, and what is unfinished."""

from __future__ import annotations

import contextlib
import difflib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from fermix.config.atomic import sync_folder, write_atomically
from fermix.config.regular import open_regular
from fermix.errors import ModelUnknown, ModelUnusable, OwnerError
from fermix.paths import Home
from fermix.providers.gguf import check_beginning, check_whole

Progress = Callable[[str, int, int | None], None]
"""Told what is done (`copying`, `downloading`, `retrying`, `checking`), how many bytes, and of how many."""

PIECE_BYTES = 1024 * 1024
SPARE_BYTES = 64 * 1024 * 1024
"""Left free on the disk by whatever is put into the home."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_PIECE_OF_MANY = re.compile(r"-\d{5}-of-\d{5}$")
_FICLONE = 0x40049409
"""Source: ioctl_ficlone(2), linux/fs.h: _IOW(0x94, 9, int)."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an unfinished download comes from, and how to know that the file is still that one."""

    url: str
    etag: str = ""
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A download that was interrupted."""

    name: str
    url: str
    size_bytes: int
    total_bytes: int | None


class ModelStore:
    """`NAME.gguf` is a whole model; `NAME.gguf.part` with `.part.json` is one on its way."""

    def __init__(self, home: Home) -> None:
        self.folder = home.models

    def path(self, name: str) -> Path:
        """Where the model of this name is, or would be. Raises: OwnerError when it is no name."""
        if not _NAME.fullmatch(name):
            raise OwnerError(
                f"{name[:100]!r} is no name for a model; expected letters, digits and . _ + - only.",
                hint="Give one with --name NAME",
            )
        if _PIECE_OF_MANY.search(name):
            raise ModelUnusable(
                f"{name!r} is one piece of a split model; fermix takes models of one file.",
                hint="llama-gguf-split --merge FIRST-PIECE WHOLE.gguf",
            )
        return self.folder / f"{name}.gguf"

    def part(self, name: str) -> Path:
        return self.path(name).with_suffix(".gguf.part")

    def names(self) -> list[str]:
        """Every whole model in the home."""
        return sorted(path.stem for path in self.folder.glob("*.gguf") if path.is_file())

    def unfinished(self) -> list[Unfinished]:
        """Every interrupted download."""
        found = []
        for path in sorted(self.folder.glob("*.gguf.part")):
            name = path.name.removesuffix(".gguf.part")
            with contextlib.suppress(OSError, OwnerError):
                origin = self.origin(name)
                found.append(Unfinished(name, origin.url, path.stat().st_size, origin.total))
        return found

    def origin(self, name: str) -> Origin:
        """Where the part comes from; an empty address when nobody knows."""
        try:
            told = json.loads(self._note(name).read_bytes())
            return Origin(str(told["url"]), str(told["etag"]), told["total"])
        except (OSError, ValueError, TypeError, KeyError):
            return Origin("")

    def note(self, name: str, origin: Origin) -> None:
        """Remember where the part comes from."""
        write_atomically(self._note(name), json.dumps(asdict(origin)).encode(), mode=0o600)

    @contextlib.contextmanager
    def adding(self, name: str) -> Iterator[Path]:
        """Where to put the file, for one process at a time.

        Raises: OwnerError when there is such a model, or another process is at it.
        """
        target = self.path(name)
        lock = self.folder / f".{name}.lock"
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if not _took(descriptor, lock):
                raise OwnerError(f"Another fermix is adding the model {name!r} right now.")
            if target.exists() or target.is_symlink():
                raise OwnerError(
                    f"There is a model {name!r} already.",
                    hint=f"Give another --name, or first: fermix models remove {name}",
                )
            try:
                yield target
            finally:
                lock.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def put(self, part: Path, target: Path, *, sha256: str | None, progress: Progress) -> None:
        """Make a complete part the model, once it has been looked at; else remove it.

        Raises: ModelUnusable; OSError.
        """
        try:
            check_whole(part, target.stem)
            if sha256 is not None:
                _check_sum(part, sha256, progress)
        except ModelUnusable:
            self.drop(target.stem)
            raise
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
        self._note(target.stem).unlink(missing_ok=True)
        sync_folder(self.folder)

    def drop(self, name: str) -> bool:
        """Remove an unfinished download; whether there was one."""
        part = self.part(name)
        was_there = part.exists()
        part.unlink(missing_ok=True)
        self._note(name).unlink(missing_ok=True)
        return was_there

    def remove(self, name: str) -> int:
        """Take a model, or an unfinished one, out of the home; the bytes that were given back.

        A link is removed, never what it leads to.
        Raises: ModelUnknown with the nearest name.
        """
        target = self.path(name)
        size = 0
        for path in (target, self.part(name)):
            with contextlib.suppress(FileNotFoundError):
                found = path.lstat()
                path.unlink()
                size += found.st_size if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 else 0
                self._note(name).unlink(missing_ok=True)
                sync_folder(self.folder)
                return size
        raise unknown(name, [*self.names(), *(each.name for each in self.unfinished())])

    def add_file(self, source: Path, name: str, *, sha256: str | None, progress: Progress) -> Path:
        """Copy a file of this machine into the home; shares its blocks with it where the disk can.

        Raises: ModelUnusable, OwnerError; then nothing is left behind.
        """
        self.path(name)  # a name that is none is told before anything else
        with open_regular(source) as file, self.adding(name) as target:
            check_beginning(file.read(64), source.name)
            file.seek(0)
            size = os.fstat(file.fileno()).st_size
            part = target.with_suffix(".gguf.part")
            try:
                part.unlink(missing_ok=True)
                if not _cloned(file.fileno(), part):
                    check_room(self.folder, size)
                    with part.open("xb") as copy:
                        part.chmod(0o600)
                        done = 0
                        while piece := file.read(PIECE_BYTES):
                            copy.write(piece)
                            done += len(piece)
                            progress("copying", done, size)
                self.put(part, target, sha256=sha256, progress=progress)
            except BaseException:  # Ctrl-C too: a copy is quickly made again
                self.drop(name)
                raise
        return target

    def _note(self, name: str) -> Path:
        return self.folder / f"{name}.gguf.part.json"


def unknown(name: str, known: list[str]) -> ModelUnknown:
    """That no model has this name, with the nearest."""
    nearest = difflib.get_close_matches(name, known, n=1)
    asked = f" Did you mean {nearest[0]!r}?" if nearest else ""
    told = f" Available: {', '.join(sorted(known))}." if known else ""
    return ModelUnknown(f"No model named {name!r}.{asked}{told}", hint="fermix models list")


def check_room(folder: Path, size_bytes: int) -> None:
    """Raises: OwnerError when the disk of `folder` has no room for so many bytes more."""
    free = shutil.disk_usage(folder).free
    if size_bytes + SPARE_BYTES > free:
        raise OwnerError(
            f"The disk has {free // 1_000_000} MB free; "
            f"{(size_bytes + SPARE_BYTES) // 1_000_000} MB are needed.",
            hint=f"df -h '{folder}'",
        )


def explain(error: OSError, path: Path) -> OwnerError:
    """What a failing disk means for whoever adds a model."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OwnerError(f"The disk of '{path.parent}' is full.", hint=f"df -h '{path.parent}'")
    return OwnerError(f"Cannot write '{path}': {error.strerror or error}.", hint=f"ls -ld '{path.parent}'")


def _took(descriptor: int, lock: Path) -> bool:
    """Whether the lock is ours, and still the one of that name: whoever had it removes it at the end."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _cloned(descriptor: int, part: Path) -> bool:
    """Whether the file now shares its blocks with the part, as on btrfs and xfs."""
    with part.open("xb") as copy:
        part.chmod(0o600)
        try:
            fcntl.ioctl(copy.fileno(), _FICLONE, descriptor)
        except OSError:
            part.unlink()
            return False
    return True


def _check_sum(path: Path, sha256: str, progress: Progress) -> None:
    size, done = path.stat().st_size, 0
    summed = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            summed.update(piece)
            done += len(piece)
            progress("checking", done, size)
    if summed.hexdigest() != sha256.lower():
        raise ModelUnusable(
            f"The file is not the one that was promised: its SHA-256 is {summed.hexdigest()}, "
            f"expected {sha256.lower()}."
        )
