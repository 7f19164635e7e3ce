"""What a bug report carries: a few texts, masked, in one file that only its owner can read."""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path

from fermix.config.atomic import write_atomically
from fermix.errors import FermixError, OwnerError
from fermix.paths import Home
from fermix.secrets import SecretStores
from fermix.setup.doctor.masking import MASK, SENSITIVE_WORD, Mask, suspects
from fermix.setup.doctor.store import opened

SAID_CHARACTERS = 200_000
READ_BYTES = 1_000_000
"""Longest file that is looked through for secrets."""
_REFERENCE = re.compile(r"@secret:([a-z0-9][a-z0-9_-]*)")
_SECRET_NAME = re.compile(rf"(?i){SENSITIVE_WORD}$")
_MULTILINE = re.compile(r"(?s)(=\s*)(\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z))")


def known_secrets(home: Home, environment: Mapping[str, str], *, units: Iterable[str] = ()) -> set[str]:
    """Every secret this home, environment and service hold, wherever it stands and whatever its mode."""
    found = {text for path in _secret_files(home) if (text := _read(path))}
    # Once more without the environment: what it hides may be older and still in the log.
    bare = {name: text for name, text in environment.items() if not name.startswith("FERMIX_SECRET_")}
    stores = (SecretStores(home, environment), SecretStores(home, bare))
    written = "\n".join(_read(path) or "" for path in _configs(home))
    names = set(_REFERENCE.findall(written))
    for each in stores:
        with suppress(FermixError):
            names |= set(each.names())
    for store, name in product(stores, names):
        with suppress(FermixError):
            found.add(store.get(name).reveal())
    found |= {text for name, text in environment.items() if _SECRET_NAME.search(name)}
    found |= {text for name, text in environment.items() if name.startswith("FERMIX_SECRET_")}
    for text in (written, _read(home.root / "service.env") or "", *units):
        found |= suspects(text)
    for name in ("auth.json", "tokens.toml"):
        found |= set(_texts(_parsed(home.root / name)))
    for path in _configs(home):
        found |= set(_secret_texts(_parsed(path)))
    return {each.strip() for each in found}


def said_lately(home: Home, *, is_used: bool) -> set[str]:
    """What persons and models said last, so far as it fits; nothing where it cannot be read."""
    found: set[str] = set()
    left = SAID_CHARACTERS
    with suppress(sqlite3.Error, OSError), opened(home, is_used=is_used) as connection:
        rows = connection.execute("SELECT body FROM messages WHERE role != 'tool' ORDER BY id DESC")
        for (body,) in rows:
            for text in _texts(_json(str(body))):
                found.add(text[:left])
                left -= len(text)
                if left <= 0:
                    return found
    return found


def masked_config(text: str, mask: Mask) -> str:
    """config.toml with every secret-looking value masked; references to secrets stay."""
    whole = _MULTILINE.sub(lambda found: found[1] + f'"{MASK}"', text)
    return mask.text(whole)


def members(texts: Mapping[str, str], facts: Mapping[str, object], mask: Mask) -> dict[str, bytes]:
    """Name → content: texts as they are, facts as JSON; all masked."""
    made = {
        name: json.dumps(mask.value(each), indent=2, ensure_ascii=False) for name, each in facts.items()
    }
    made = {name: mask.known(text) + "\n" for name, text in made.items()}
    made |= {
        name: masked_config(text, mask) if name.endswith(".toml") else mask.text(text)
        for name, text in texts.items()
    }
    return {name: text.encode("utf-8", "backslashreplace") for name, text in made.items()}


def write(path: Path, contents: Mapping[str, bytes], *, now_s: int) -> None:
    """Write them as a tar.gz, 0600 from its first byte; it names no user and no folder.

    Raises: OwnerError when there is such a file, or it cannot be written.
    """
    if path.exists() or path.is_symlink():
        raise OwnerError(
            f"'{path}' is there already; a report overwrites nothing.", hint="Name another one with --out"
        )
    folder = path.name.removesuffix(".gz").removesuffix(".tar")
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=now_s) as stream,
        tarfile.open(fileobj=stream, mode="w") as tar,
    ):
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), now_s, 0o600
            tar.addfile(entry, io.BytesIO(content))
    try:
        write_atomically(path, packed.getvalue(), mode=0o600)
    except OSError as error:
        raise OwnerError(
            f"The report '{path}' cannot be written: {error.strerror}.",
            hint="Name another place with --out",
        ) from error


def _secret_files(home: Home) -> list[Path]:
    with suppress(OSError):
        return [home.root / "api-token", *home.secrets.iterdir()]
    return [home.root / "api-token"]


def _configs(home: Home) -> list[Path]:
    """The file, and those it was before."""
    with suppress(OSError):
        return sorted(home.root.glob("config.toml*"))
    return []


def _read(path: Path) -> str | None:
    """What stands in a plain file; None for anything else."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(READ_BYTES).decode("utf-8", "surrogateescape").strip()
    return None


def _json(text: str) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text


def _parsed(path: Path) -> object:
    text = _read(path) or ""
    with suppress(ValueError, RecursionError):
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text.removeprefix("\ufeff"))
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _secret_texts(value: object) -> Iterator[str]:
    """The texts below keys that are called like a secret; a reference is none."""
    if isinstance(value, dict):
        for name, each in value.items():
            if _SECRET_NAME.search(str(name)):
                yield from (text for text in _texts(each) if not text.startswith("@secret:"))
            else:
                yield from _secret_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _secret_texts(each)
