"""A whole document against the schema: settings objects, or everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from fermix.config import values
from fermix.config.declare import Section, section_of
from fermix.config.schema import NAME, Schema, path_of, shortened
from fermix.config.source import Source
from fermix.errors import ConfigError, SettingInvalid

PROBLEMS_LIMIT = 50
"""A document with more than this is another program's; the rest is not listed."""


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the document says, with the defaults filled in."""

    tables: dict[tuple[str, ...], object]
    """Path of a table -> its settings object; named tables only where the owner wrote them."""
    problems: list[ConfigError]
    """In the document's own order; a table with a problem holds its defaults."""

    def one(self, make: type[S]) -> S:
        """The settings of this class."""
        found = self.tables[path_of(section_of(make))]
        assert isinstance(found, make)
        return found

    def named(self, make: type[S]) -> dict[str, S]:
        """The owner's names -> settings of this class."""
        path = path_of(section_of(make))
        below = {at[-1]: each for at, each in self.tables.items() if at[:-1] == path}
        return {name: each for name, each in below.items() if isinstance(each, make)}


def decode(schema: Schema, source: Source, *, user_home: str) -> Decoded:
    """Decode a document; `user_home` is what `~` stands for in paths."""
    reader = _Reader(schema, source, user_home)
    reader.refuse_unknown(source.document, ())
    tables: dict[tuple[str, ...], object] = {}
    for each in schema.sections:
        path = path_of(each)
        paths = [(*path, name) for name in reader.names_in(path)] if each.is_named else [path]
        for at in paths:
            tables[at] = reader.settings(each, at)
    return Decoded(tables, reader.problems)


@dataclass(slots=True)
class _Reader:
    schema: Schema
    source: Source
    user_home: str
    problems: list[ConfigError] = field(default_factory=list)

    def refuse_unknown(self, table: dict[str, object], path: tuple[str, ...]) -> None:
        """Note every key below `path` that nobody declares, and every table that is none."""
        section = self.schema.section_at(path)
        known = {each.name for each in section.settings} if section else set()
        for name, value in table.items():
            below = (*path, name)
            if name in known:
                continue
            if len(self.problems) >= PROBLEMS_LIMIT:
                return
            if self.schema.section_at(below) is None and not self.schema.leads_on(below):
                self.problems.append(self._unknown(below, value))
            elif isinstance(value, dict):
                self.refuse_unknown(value, below)
            else:
                self.problems.append(
                    SettingInvalid(
                        f"{'.'.join(below)!r} ({self.source.place(below)}) must be a table, "
                        f"written [{'.'.join(below)}]."
                    )
                )

    def table_at(self, path: tuple[str, ...]) -> dict[str, object]:
        """The table at `path`; empty when it is not there."""
        table: object = self.source.document
        for name in path:
            table = table.get(name) if isinstance(table, dict) else None
        return table if isinstance(table, dict) else {}

    def names_in(self, path: tuple[str, ...]) -> list[str]:
        """The owner's names that stand below a named section."""
        return [name for name in self.table_at(path) if self.schema.section_at((*path, name)) is not None]

    def settings(self, section: Section, path: tuple[str, ...]) -> object:
        """The table's settings object; its defaults after noting what is wrong with it."""
        table = self.table_at(path)
        made: dict[str, object] = {}
        before = len(self.problems)
        for setting in section.settings:
            if setting.name not in table:
                continue
            full = (*path, setting.name)
            try:
                made[setting.name] = values.decode(
                    setting,
                    table[setting.name],
                    key=".".join(full),
                    place=partial(self.source.place, full),
                    user_home=self.user_home,
                )
            except SettingInvalid as exc:
                self.problems.append(exc)
        if len(self.problems) > before:
            return section.make()
        try:
            settings: object = section.make(**made)
        except ValueError as exc:  # the class's own check of settings against each other
            self.problems.append(SettingInvalid(f"[{'.'.join(path)}] ({self.source.place(path)}): {exc}."))
            return section.make()
        return settings

    def _unknown(self, path: tuple[str, ...], value: object) -> ConfigError:
        place = self.source.place(path)
        owner = next((each for each in self.schema.sections if path_of(each) == path[:-1]), None)
        if (
            owner is not None
            and owner.is_named
            and not NAME.fullmatch(path[-1])
            and isinstance(value, dict)
        ):
            return SettingInvalid(
                f"{shortened(path[-1])!r} cannot be a name in [{owner.name}.NAME] ({place}). "
                "Expected at most 64 letters, digits, '-' and '_'."
            )
        return self.schema.unknown(path, place)
