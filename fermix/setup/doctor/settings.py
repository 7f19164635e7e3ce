"""config.toml: everything wrong with it, and the way back from a file that is only rubble."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from fermix.config.atomic import write_atomically
from fermix.config.source import SIZE_LIMIT_BYTES, parse_source
from fermix.config.writer import backup_of
from fermix.errors import ConfigChanged, ConfigError, FermixError
from fermix.setup.doctor.finding import Finding, Topic, quoted
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("config")
ASIDE = "broken"
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""What no editor writes."""
_KEY = re.compile(r"^No (?:setting|section) named '([A-Za-z0-9_.-]+)' ")


def look(scene: Scene) -> list[Finding]:
    """Every problem of the file; missing secrets and modes have checks of their own."""
    path = scene.home.config
    if path.is_dir():
        return [
            TOPIC.fail(f"'{path}' is a folder. Expected a file.", f"mv {quoted(path)} {quoted(path)}.aside")
        ]
    problems = scene.problems()
    if any(each.code == "home_unsafe" and str(path) not in each.message for each in problems[:1]):
        return [TOPIC.skipped(f"'{path}' is not read before the home is repaired.", problems[0].hint)]
    wrong = [each for each in problems if each.code not in ("secret_missing", "home_unsafe")]
    if wrong:
        return _broken(scene, wrong)
    if emptied := _emptied(scene):
        return [emptied]
    told = (
        f"'{path}' is good." if path.exists() else f"There is no '{path}': every setting has its default."
    )
    return [TOPIC.ok(told)]


def _broken(scene: Scene, wrong: Sequence[FermixError]) -> list[Finding]:
    path, backup = scene.home.config, backup_of(scene.home.config)
    raw, kept = _read(path), _read(backup)
    if raw is not None and kept and _is_rubble(path, raw, kept) and not scene.problems_in(kept):
        return [
            TOPIC.fail(
                f"{wrong[0].message} What stood there before is kept.",
                f"fermix doctor --fix  # puts back '{backup}', keeps the present file aside",
                fix=partial(_restore, path, raw, kept),
            )
        ]
    together = _together(path, scene.problems_in(raw) if raw is not None else ())
    return [TOPIC.fail(each.message, together.get(each.message, _command(each))) for each in wrong]


def _together(path: Path, problems: Sequence[FermixError]) -> dict[str, str]:
    """Message → command, for problems of which `fermix config` repairs none while there are others."""
    if len(problems) < 2:
        return {}
    keys = [found[1] for each in problems if (found := _unknown_key(each))]
    command = f"${{EDITOR:-vi}} {quoted(path)}"
    if len(keys) == len(problems):
        command = f"fermix config unset {' '.join(keys)}"
    return {each.message: command for each in problems}


def _command(problem: FermixError) -> str | None:
    """The hint of an unknown key is a list to read; the command takes the key out."""
    found = _unknown_key(problem)
    return f"fermix config unset {found[1]}" if found else problem.hint


def _unknown_key(problem: FermixError) -> re.Match[str] | None:
    return _KEY.match(problem.message) if problem.code == "setting_unknown" else None


def _emptied(scene: Scene) -> Finding | None:
    """An empty file is good TOML; beside a backup that is not, it is what a crash leaves."""
    path, backup = scene.home.config, backup_of(scene.home.config)
    raw, kept = _read(path), _read(backup)
    if raw is None or raw.strip() or not kept or not kept.strip():
        return None
    told = f"'{path}' is empty, and '{backup}' has {len(kept)} bytes."
    return TOPIC.warn(told, "fermix config restore")


def _is_rubble(path: Path, raw: bytes, kept: bytes) -> bool:
    """Whether nobody wrote this: no text at all, or the beginning of what the backup holds.

    Anything else that is no TOML may be a person's work with a slip in it.
    """
    try:
        parse_source(path, raw)
    except ConfigError:
        pass
    else:
        return False
    if _CONTROLS.search(raw):
        return True
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False  # saved in another encoding
    return kept.decode("utf-8-sig").startswith(text)


def _restore(path: Path, seen: bytes, kept: bytes) -> str:
    """Keep the present file aside under a name its content gives, then put the backup in its place.

    Raises: ConfigChanged when someone wrote the file meanwhile.
    """
    aside = path.with_name(f"{path.name}.{ASIDE}-{hashlib.sha256(seen).hexdigest()[:8]}")
    target = Path(os.path.realpath(path))
    if _read(path) != seen:
        raise ConfigChanged(f"'{path}' was changed meanwhile; it is left as it is.", hint="fermix doctor")
    if _read(aside) != seen:
        write_atomically(aside, seen, mode=0o600)
    write_atomically(target, kept, mode=0o600)
    return f"put back '{backup_of(path)}'; the broken file is kept as '{aside}'"


def _read(path: Path) -> bytes | None:
    """The bytes of a regular file of a sane size; None for anything else."""
    with suppress(OSError):
        found = path.stat()
        if stat.S_ISREG(found.st_mode) and found.st_size <= SIZE_LIMIT_BYTES:
            return path.read_bytes()
    return None
