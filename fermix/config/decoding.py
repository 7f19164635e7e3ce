"""A whole document against the schema: settings objects, or everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from fermix.config import values
from fermix.config.declare import Section
from fermix.config.schema import NAME, Schema, path_of
from fermix.config.source import Source
from fermix.errors import ConfigError, SettingInvalid

PROBLEMS_LIMIT = 50
"""A document with more than this is another program's; the rest is not listed."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the document says, with the defaults filled in."""

    sections: dict[str, object]
    """Section name -> its settings object; for a named section name -> object."""
    problems: list[ConfigError]
    """In the document's own order; where there are any, `sections` holds defaults in their place."""


def decode(schema: Schema, source: Source, *, user_home: str) -> Decoded:
    """Decode a document; `user_home` is what `~` stands for in paths."""
    reader = _Reader(schema, source, user_home)
    reader.refuse_unknown(source.document, ())
    sections: dict[str, object] = {}
    for each in schema.sections:
        table = reader.table_at(path_of(each))
        if each.is_named:
            named = {name: reader.settings(each, (*path_of(each), name)) for name in table}
            sections[each.name] = {name: made for name, made in named.items() if made is not None}
        else:
            sections[each.name] = reader.settings(each, path_of(each)) or each.make()
    return Decoded(sections, reader.problems)


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

    def settings(self, section: Section, path: tuple[str, ...]) -> object | None:
        """The section's object; None after noting what is wrong with it."""
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
            return None
        try:
            settings: object = section.make(**made)
        except ValueError as exc:  # the class's own check of settings against each other
            self.problems.append(SettingInvalid(f"[{'.'.join(path)}] ({self.source.place(path)}): {exc}."))
            return None
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
                f"{path[-1]!r} cannot be a name in [{owner.name}.NAME] ({place}). "
                "Expected at most 64 letters, digits, '-' and '_'."
            )
        return self.schema.unknown(path, place)
