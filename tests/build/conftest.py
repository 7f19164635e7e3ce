"""Launchers with small payloads of their own, so that each trouble is tried in milliseconds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PROGRAM = """#!/bin/sh
# {label}
[ "$1" = wait ] && exec sleep 60
[ "$1" = environment ] && exec env
[ "$1" = umask ] && umask
[ "$1" = streams ] && exec readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2
[ "$1" = fail ] && exit 7
echo "{label} $*"
"""


@dataclass
class Launched:
    """One packed executable and a cache folder of its own."""

    executable: Path
    cache: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(
        self,
        *words: str,
        mounts: str = "",
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end; `mounts` are shell lines run first, in a mount namespace of its own."""
        return subprocess.run(
            self.command(*words, mounts=mounts),
            env=environment or {"FERMIX_RUNTIME_DIR": str(self.cache), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start without waiting; ended with the test."""
        process = subprocess.Popen(
            self.command(*words),
            env={"FERMIX_RUNTIME_DIR": str(self.cache), "PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def command(self, *words: str, mounts: str = "") -> list[str]:
        """The command line, in a mount namespace when there is something to mount."""
        if not mounts:
            return [str(self.executable), *words]
        namespace = (
            ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        )
        return [*namespace, "sh", "-ec", f'{mounts}\nexec "$0" "$@"', str(self.executable), *words]

    def versions(self) -> list[Path]:
        """The unpacked directories."""
        return sorted(path for path in self.cache.glob("*-*") if path.is_dir())

    def leftovers(self) -> list[str]:
        """Whatever lies in the cache beside unpacked directories and the lock."""
        return [p.name for p in self.cache.iterdir() if p.name.startswith(".") and p.name != ".lock"]


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled launcher without a payload."""
    out = tmp_path_factory.mktemp("launcher") / "launcher"
    source = CHECKOUT / "native/launcher.c"
    command = [
        "gcc",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-static",
        "-o",
        str(out),
        str(source),
        "-lzstd",
    ]
    subprocess.run(command, check=True, timeout=60)
    return out


Packer = Callable[..., Launched]


@pytest.fixture
def pack(launcher: Path, tmp_path: Path) -> Iterator[Packer]:
    """Packs an executable: `pack(label, size_bytes=…, segments=(…), files=(…))`; one test, one cache."""
    packed: list[Launched] = []

    def build(
        label: str = "one",
        *,
        size_bytes: int = 0,
        segments: tuple[str, ...] = ("program",),
        files: tuple[str, ...] = (),
    ) -> Launched:
        folder = tmp_path / label
        (folder / "lib/deep").mkdir(parents=True)
        program = folder / "fermix"
        program.write_text(PROGRAM.format(label=label))
        program.chmod(0o755)
        (folder / "lib/deep/data").write_bytes(os.urandom(1000) + bytes(size_bytes))
        (folder / "lib/link").symlink_to("deep/data")
        for name in files:
            (folder / name).touch()
        packer = [sys.executable, str(CHECKOUT / "build/pack.py")]
        segment, out = tmp_path / f"{label}.segment", tmp_path / f"{label}.bin"
        subprocess.run([*packer, "segment", folder, segment, "--level", "1"], check=True, timeout=60)
        named = [f"{name}={segment}" for name in segments]
        subprocess.run(
            [*packer, "join", launcher, out, *named], check=True, timeout=60, capture_output=True
        )
        shutil.rmtree(folder)
        launched = Launched(out, tmp_path / "cache")
        packed.append(launched)
        return launched

    yield build
    for process in [process for launched in packed for process in launched.started]:
        process.kill()
        process.communicate(timeout=10)


def age(version: Path, days: int) -> None:
    """Pretend that a version was last used that long ago."""
    then = time.time() - days * 86400
    os.utime(version / ".manifest", (then, then))
