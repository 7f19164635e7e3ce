"""Settings as `fermix config` shows them: value, where it comes from, what it is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fermix.config import values
from fermix.config.decoding import Decoded, decode
from fermix.config.schema import Located, path_of
from fermix.config.source import Source, read_source
from fermix.daemon.sections import SCHEMA, user_home
from fermix.errors import SettingUnknown
from fermix.paths import Home


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting with the value that counts."""

    located: Located
    value: object
    is_set: bool
    """In config.toml; False: the default."""

    def facts(self) -> dict[str, Any]:
        """For --json."""
        setting = self.located.setting
        return {
            "key": self.located.key,
            "value": values.plain(self.value),
            "default": values.plain(setting.default),
            "is_set": self.is_set,
            "unit": setting.unit,
            "help": setting.help,
            "needs_restart": setting.needs_restart,
        }


@dataclass(frozen=True, slots=True)
class Found:
    """config.toml read without a problem."""

    source: Source
    decoded: Decoded

    def one(self, key: str) -> Shown:
        """The setting a key names.

        Raises: SettingUnknown.
        """
        located = SCHEMA.locate(key)
        if located.table not in self.decoded.tables:
            raise SettingUnknown(
                f"There is no table [{'.'.join(located.table)}] in {self.source.path}.",
                hint=f"fermix config set {key} VALUE",
            )
        return self.shown(located)

    def shown(self, located: Located) -> Shown:
        """A setting of a table that is there."""
        value = getattr(self.decoded.tables[located.table], located.setting.name)
        return Shown(located, value, located.setting.name in _table(self.source.document, located.table))

    def all(self) -> Iterable[Shown]:
        """Every setting, of the owner's named tables too, in the schema's order."""
        names = {
            each.name: [at[-1] for at in self.decoded.tables if at[:-1] == path_of(each)]
            for each in SCHEMA.sections
            if each.is_named
        }
        return (self.shown(located) for located in SCHEMA.keys(names))


def read_settings(home: Home, environment: Mapping[str, str]) -> Found:
    """What the home's config.toml says.

    Raises: the first problem with it.
    """
    source = read_source(home.config)
    decoded = decode(SCHEMA, source, user_home=user_home(environment))
    if decoded.problems:
        raise decoded.problems[0]
    return Found(source, decoded)


def shown_settings(found: Found, *, has_defaults: bool) -> list[Shown]:
    """What is set, or all there is."""
    return [each for each in found.all() if each.is_set or has_defaults]


def as_toml(shown: list[Shown], *, has_help: bool) -> str:
    """Text that could stand in config.toml; what is not set is commented out."""
    lines: list[str] = []
    table: tuple[str, ...] = ()
    for each in shown:
        if each.located.table != table:
            table = each.located.table
            lines += ["", f"[{'.'.join(table)}]"]
        setting = each.located.setting
        if has_help:
            restart = " Counts after a restart." if setting.needs_restart else ""
            lines.append(f"# {setting.help}" + (f" ({setting.unit})" if setting.unit else "") + restart)
        line = f"{setting.name} = {values.written(each.value)}"
        lines.append(line if each.is_set else f"# {line}")
    return "\n".join(lines[1:])


def _table(document: dict[str, object], path: tuple[str, ...]) -> dict[str, object]:
    found: object = document
    for name in path:
        found = found.get(name, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}
