"""All declared sections together: what config.toml may say, and the setting a key names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fermix.config.declare import Section, Setting, section_of
from fermix.errors import SettingUnknown

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What an owner may call a table of a named section, `[providers.NAME]`."""

_SHOWN_LENGTH = 100
_HINT = "fermix config show --defaults"


@dataclass(frozen=True, slots=True)
class Located:
    """A setting at its place: which table of the file, and which setting in it."""

    table: tuple[str, ...]
    """With the owner's own name where the section has names."""
    setting: Setting

    @property
    def path(self) -> tuple[str, ...]:
        return (*self.table, self.setting.name)

    @property
    def key(self) -> str:
        return ".".join(self.path)


class Schema:
    """The whole of what config.toml may say."""

    def __init__(self, classes: Iterable[type]) -> None:
        self.sections = tuple(section_of(each) for each in classes)

    def locate(self, key: str) -> Located:
        """The setting a dotted key names.

        Raises: SettingUnknown with the nearest key, or with what there is.
        """
        *table, name = key.split(".")
        section = self.section_at(tuple(table))
        if section is not None:
            for setting in section.settings:
                if setting.name == name:
                    return Located(tuple(table), setting)
        raise self.unknown((*table, name))

    def section_at(self, table: tuple[str, ...]) -> Section | None:
        """The section whose table this is; None when no section has it."""
        for each in self.sections:
            path = path_of(each)
            if each.is_named and table and table[:-1] == path and NAME.fullmatch(table[-1]):
                return each
            if not each.is_named and table == path:
                return each
        return None

    def leads_on(self, table: tuple[str, ...]) -> bool:
        """Whether sections lie below this table, whatever it is itself."""
        for each in self.sections:
            path = path_of(each)
            if path[: len(table)] == table and (each.is_named or len(path) > len(table)):
                return True
        return False

    def keys(self, names: Mapping[str, Iterable[str]]) -> Iterator[Located]:
        """Every setting there is; `names` gives the owner's names in each named section."""
        for each in self.sections:
            path = path_of(each)
            tables = [(*path, name) for name in names.get(each.name, ())] if each.is_named else [path]
            for table in tables:
                for setting in each.settings:
                    yield Located(table, setting)

    def unknown(self, path: tuple[str, ...], place: str = "") -> SettingUnknown:
        """The error for a key that no section declares; `place` is its file and line."""
        key = shortened(".".join(path))
        where = f" ({place})" if place else ""
        section = self.section_at(path)
        if section is not None or self.leads_on(path):
            below = section.settings if section else self._sections_below(path)
            listed = ", ".join(sorted(each.name for each in below))
            return SettingUnknown(
                f"{key!r} is a section, not a setting{where}. It has: {listed}.", hint=_HINT
            )
        kind = "setting" if len(path) > 1 else "section"
        return SettingUnknown(f"No {kind} named {key!r}{where}. {self._instead(path)}", hint=_HINT)

    def _instead(self, path: tuple[str, ...]) -> str:
        sections = [each.name for each in self.sections]
        written = shortened(".".join(path))
        if len(path) == 1:
            near = difflib.get_close_matches(written, sections, n=1)
            return f"Did you mean {near[0]!r}?" if near else f"Sections: {', '.join(sorted(sections))}."
        # A named section is compared under the name that was written in its place.
        names = {each.name: [_written_name(each, path)] for each in self.sections if each.is_named}
        known = [*sections, *(each.key for each in self.keys(names))]
        near = difflib.get_close_matches(written, known, n=1)
        if near:
            return f"Did you mean {near[0]!r}?"
        section = self.section_at(path[:-1])
        if section is not None:
            return (
                f"[{'.'.join(path[:-1])}] has: {', '.join(sorted(each.name for each in section.settings))}."
            )
        return f"Sections: {', '.join(sorted(sections))}."

    def _sections_below(self, path: tuple[str, ...]) -> list[Section]:
        return [each for each in self.sections if path_of(each)[: len(path)] == path]


def path_of(section: Section) -> tuple[str, ...]:
    """The section's table as a path; without the owner's name for a named one."""
    return tuple(section.name.split("."))


def shortened(key: str) -> str:
    """A key as an error message shows it: whatever was written, at most about a line."""
    return key if len(key) <= _SHOWN_LENGTH else key[: _SHOWN_LENGTH - 1] + "…"


def _written_name(section: Section, path: tuple[str, ...]) -> str:
    position = len(path_of(section))
    return path[position] if len(path) > position + 1 else "NAME"
