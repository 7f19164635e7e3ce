"""The environment a child gets: made from nothing, with only what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

ORIGINAL = "LD_LIBRARY_PATH_ORIG"
"""What PyInstaller's bootloader saved. Source: its manual, "LD_LIBRARY_PATH / LIBPATH considerations"."""
NEVER = ("FERMIX_*", "_PYI_*", "PYINSTALLER_*", "_MEIPASS*", "*_ORIG")
"""Ours (secrets among them) and the frozen program's own, which would load its libraries into others."""


def child_environment(
    base: Mapping[str, str], allowed: Iterable[str], extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of `base` whose names match `allowed` (`LC_*` style), then `extra` over them.

    LD_LIBRARY_PATH becomes what it was before a frozen fermix changed it for itself, or is left out.
    """
    patterns = tuple(allowed)
    chosen = {
        name: value
        for name, value in base.items()
        if _matches(name, patterns) and not _matches(name, NEVER) and name != "LD_LIBRARY_PATH"
    }
    search_path = _library_path(base)
    if search_path and _matches("LD_LIBRARY_PATH", patterns):
        chosen["LD_LIBRARY_PATH"] = search_path
    return {**chosen, **(extra or {})}


def _library_path(base: Mapping[str, str]) -> str | None:
    if ORIGINAL in base:
        return base[ORIGINAL]
    is_frozen = any(_matches(name, ("_PYI_*", "_MEIPASS*")) for name in base)
    return None if is_frozen else base.get("LD_LIBRARY_PATH")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
