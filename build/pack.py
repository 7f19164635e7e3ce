"""Packs folders into payload segments and appends them to the launcher (format: native/launcher.c).

`pack.py segment FOLDER OUT [--level N]` writes one compressed segment.
`pack.py join LAUNCHER OUT NAME=SEGMENT...` writes the executable and prints its size.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAGIC = b"FERMIXP1"
RECORD = struct.Struct("<IIQ")  # mode, name length, size
ENTRY = struct.Struct("<16s32sQQQ")  # name, content hash, offset, stored size, raw size
TRAILER = struct.Struct("<II8s")  # count, 0, magic
RAW_SIZE = struct.Struct("<Q")  # closes a segment file; not part of the executable


def main() -> int:
    """Pack as asked on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    segment = verbs.add_parser("segment")
    segment.add_argument("folder", type=Path)
    segment.add_argument("out", type=Path)
    segment.add_argument("--level", type=int, default=19)
    segment.set_defaults(run=lambda given: write_segment(given.folder, given.out, level=given.level))
    join = verbs.add_parser("join")
    join.add_argument("launcher", type=Path)
    join.add_argument("out", type=Path)
    join.add_argument("segments", nargs="+", type=lambda text: tuple(text.split("=", 1)))
    join.set_defaults(run=lambda given: write_executable(given.launcher, given.out, given.segments))
    given = parser.parse_args()
    given.run(given)
    return 0


def walk(folder: Path) -> Iterator[Path]:
    """Everything below a folder, parents first, in an order that depends on names only."""
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from walk(path)


def write_records(folder: Path, out: BinaryIO) -> int:
    """Write a folder as records; the room it takes on disk. Same content, same bytes."""
    total = 0
    for path in walk(folder):
        mode = path.lstat().st_mode
        name = os.fsencode(path.relative_to(folder))
        if stat.S_ISREG(mode):
            mode = stat.S_IFREG | (0o700 if mode & 0o100 else 0o600)
            size = path.stat().st_size
            out.write(RECORD.pack(mode, len(name), size) + name)
            with path.open("rb") as content:
                shutil.copyfileobj(content, out, 1 << 20)
        else:
            data = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else b""
            size = len(data)
            out.write(RECORD.pack(stat.S_IFMT(mode) | 0o700, len(name), size) + name + data)
        total += size + 4096  # room on disk: a file takes up to one block more than it holds
    out.write(RECORD.pack(0, 0, 0))
    return total


def write_segment(folder: Path, out: Path, *, level: int) -> None:
    """Compress a folder into a segment file, its raw size appended, through a temporary name."""
    part = out.with_suffix(".part")
    with part.open("wb") as stored:
        command = ["zstd", "--quiet", f"-{level}", "-T0", "--no-check", "-c"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stored) as process:
            assert process.stdin is not None
            raw = write_records(folder, process.stdin)
            process.stdin.close()
            if process.wait():
                raise SystemExit(f"fermix: zstd failed with exit status {process.returncode}")
        stored.seek(0, os.SEEK_END)
        stored.write(RAW_SIZE.pack(raw))
    part.rename(out)


def write_executable(launcher: Path, out: Path, segments: list[tuple[str, str]]) -> None:
    """Append segments, index and trailer to the launcher, through a temporary name."""
    part = out.with_name(out.name + ".part")
    index = b""
    with part.open("wb") as executable:
        executable.write(launcher.read_bytes())
        for name, file in segments:
            content = Path(file).read_bytes()
            content, (raw,) = content[: -RAW_SIZE.size], RAW_SIZE.unpack(content[-RAW_SIZE.size :])
            digest = hashlib.sha256(content).hexdigest()[:32]
            index += ENTRY.pack(name.encode(), digest.encode(), executable.tell(), len(content), raw)
            executable.write(content)
        executable.write(index + TRAILER.pack(len(segments), 0, MAGIC))
    part.chmod(0o755)
    part.rename(out)
    print(f"{out.name}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
