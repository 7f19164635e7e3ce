"""`fermix bug-report`: one file to send, without secrets and without what was said."""

from __future__ import annotations

import os
import platform
import shlex
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import click

from fermix import __version__, native
from fermix.cli.doctor import Ticking, scene_of, summary
from fermix.cli.log_file import last_lines, tail_position
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.terminal import escaped
from fermix.config.edits import Edit, edited
from fermix.config.source import parse_source
from fermix.daemon.sections import SCHEMA, user_home
from fermix.errors import ConfigError, SettingUnknown, UsageError
from fermix.paths import Home
from fermix.setup.doctor.bundle import known_secrets, members, said_lately, write
from fermix.setup.doctor.checks import examine
from fermix.setup.doctor.masking import MASK, Mask
from fermix.setup.doctor.scene import Scene
from fermix.setup.doctor.service import unit_texts

LOG_LINES = 2000
LOG_CHARACTERS = 2_000_000
CONFIG_BYTES = 1_000_000
_PACKAGES = ("gevent", "gunicorn", "flask", "requests", "urllib3", "peewee", "msgspec", "psutil", "click")


@click.command("bug-report", epilog=examples("fermix bug-report", "fermix bug-report --out report.tar.gz"))
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Where to write it."
)
@json_option
def command(out: Path | None, as_json: bool) -> None:
    """Collect what helps to find a mistake in fermix into one file; nothing is sent.

    It holds versions, status, what doctor says, config.toml, the end of the log and the service's unit.
    Secrets, paths of your home and unknown keys' values are masked; conversations are not in it.
    """
    if str(out) == "-":
        raise UsageError("--out is '-'; expected the name of a file, since the report is an archive.")
    home, now_s = own_home(), int(time.time())
    path = out or Path(time.strftime("fermix-bug-report-%Y%m%d-%H%M%S.tar.gz", time.localtime(now_s)))
    with Ticking(is_silent=as_json) as ticking:
        ticking.restart("what to report")
        contents = collected(home, os.environ)
        write(path, contents, now_s=now_s)
    if as_json:
        print_json(
            {"path": str(path.absolute()), "files": {name: len(each) for name, each in contents.items()}}
        )
        return
    print(escaped(f"Wrote {path} with:"))
    for name, content in contents.items():
        print(f"  {name:<14} {len(content):>9,} bytes")
    print("Look at it before you send it to anyone:")
    print(escaped(f"  tar -xzOf {shlex.quote(str(path))} | less"))


def collected(home: Home, environment: Mapping[str, str]) -> dict[str, bytes]:
    """Name → masked content."""
    scene = scene_of(home, environment, is_full=False)
    units = unit_texts(scene)
    texts = {
        "config.toml": _config(home),
        "fermix.log": _log_end(home),
        "unit.txt": "\n\n".join(f"# {path}\n{text}" for path, text in units.items()),
    }
    facts: dict[str, object] = {
        "versions.json": _versions(environment),
        "status.json": scene.status
        or {"error": scene.silence.message if scene.silence else "No daemon runs."},
        "doctor.json": _examined(scene),
    }
    user = user_home(environment)
    homes = {user, os.path.realpath(user), str(Path("~").expanduser())}
    secrets = known_secrets(home, environment, units=units.values())
    said = said_lately(home, is_used=scene.status is not None)
    return members(texts, facts, Mask(secrets, user_homes=homes, said=said))


def _examined(scene: Scene) -> dict[str, object]:
    return summary(list(examine(scene, repairs=False)))


def _config(home: Home) -> str:
    """The file, without what stands at keys that fermix does not know: it may be anything."""
    try:
        with home.config.open("rb") as file:
            raw = file.read(CONFIG_BYTES)
        source = parse_source(home.config, raw)
    except OSError as error:
        return f"# {error.strerror}\n"
    except ConfigError:  # no keys can be told in it
        return raw.decode("utf-8", "backslashreplace")
    try:
        edits = [Edit(path, MASK) for path in _unknown(source.document)]
        return edited(source, edits).decode("utf-8")
    except ConfigError as error:
        return f"# Left out, since it has unknown keys: {error.message}\n"


def _unknown(table: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where values stand that no setting is."""
    for name, value in table.items():
        path = (*above, name)
        try:
            is_known = SCHEMA.locate(".".join(path)).path == path
        except SettingUnknown:
            is_known = False
        if is_known:
            continue
        if isinstance(value, dict):
            yield from _unknown(value, path)
        else:
            yield path


def _log_end(home: Home) -> str:
    try:
        lines = last_lines(home.log, LOG_LINES, end=tail_position(home.log))
    except OSError as error:
        return f"{error.strerror}\n"
    return "\n".join(lines)[-LOG_CHARACTERS:] + "\n"


def _versions(environment: Mapping[str, str]) -> dict[str, object]:
    return {
        "fermix": __version__,
        "is_frozen": bool(getattr(sys, "frozen", False)),
        "is_native_compiled": native.IS_COMPILED,
        "python": platform.python_version(),
        "system": " ".join((platform.system(), platform.release(), platform.machine())),
        "distribution": _distribution(),
        "libc": " ".join(platform.libc_ver()),
        "sqlite": sqlite3.sqlite_version,
        "locale": environment.get("LC_ALL") or environment.get("LANG"),
        "packages": {name: _package(name) for name in _PACKAGES},
    }


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _package(name: str) -> str | None:
    """None in a binary, which carries no such notes."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
