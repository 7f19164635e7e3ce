"""How a package declares its settings: `setting` for a field, `section` for a dataclass of them."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

_MARK = "__fermix_section__"
_DECLARED = "fermix.setting"
_SECTION_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Kind(StrEnum):
    """What a setting holds, in the words an owner reads."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    TEXT = "a text"
    PATH = "an absolute path"
    TEXTS = "a list of texts"
    ID = "an id (a text or a whole number)"
    IDS = "a list of ids (texts or whole numbers)"
    REFERENCE = "a secret's name, written as @secret:NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What `setting(...)` was told; the field adds its name and kind."""

    help: str
    unit: str | None
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    is_id: bool
    is_secret: bool
    needs_restart: bool
    """A running daemon cannot take it up; it counts from the next start on."""
    check: Callable[[Any], str | None] | None
    """Any: the decoded value, whatever the field's type is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One declared setting, complete."""

    name: str
    kind: Kind
    default: object
    declared: Declared

    @property
    def help(self) -> str:
        return self.declared.help

    @property
    def unit(self) -> str | None:
        return self.declared.unit

    @property
    def needs_restart(self) -> bool:
        return self.declared.needs_restart

    def expected(self) -> str:
        """What a good value is, for an error message."""
        if self.declared.choices:
            return "one of " + ", ".join(self.declared.choices)
        low, high = self.declared.minimum, self.declared.maximum
        text = str(self.kind)
        if low is not None and high is not None:
            text += f" from {low} to {high}"
        elif low is not None:
            text += f" of at least {low}"
        elif high is not None:
            text += f" of at most {high}"
        return text + (f" ({self.unit})" if self.unit else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One declared table of config.toml."""

    name: str
    """Dotted as in the file: `gateway`, `channels.telegram`."""
    is_named: bool
    """Whether the tables are `[name.NAME]`, one per name the owner chose."""
    make: type
    settings: tuple[Setting, ...]


def setting(
    default: T,
    help: str,
    *,
    unit: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    is_id: bool = False,
    is_secret: bool = False,
    needs_restart: bool = False,
    check: Callable[[T], str | None] | None = None,
) -> T:
    """Declare one setting as a dataclass field with a default, a help sentence and its unit.

    The field's type decides what is accepted: int, float, bool, str, Path, tuple[str, ...],
    each also as `| None`. `is_id` takes integers too and gives their text. `is_secret` takes
    only `@secret:NAME` (resolve it with `SecretStores.resolve`). `needs_restart`: a running daemon
    cannot take a change up, so a reload leaves it and says so. `check` answers None for a good value,
    else what was expected.
    """
    declared = Declared(
        help=help,
        unit=unit,
        minimum=minimum,
        maximum=maximum,
        choices=tuple(choices),
        is_id=is_id,
        is_secret=is_secret,
        needs_restart=needs_restart,
        check=check,
    )
    return field(default=default, metadata={_DECLARED: declared})


def section(name: str, *, is_named: bool = False) -> Callable[[C], C]:
    """Mark a frozen dataclass of settings as the table `[name]` of config.toml.

    `is_named`: the tables are `[name.NAME]`, any number of them, each one such dataclass.
    Raises: TypeError at once when the class is not wholly made of settings.
    """
    if not _SECTION_NAME.fullmatch(name):
        raise TypeError(f"{name!r} is not a section name: lower-case words joined by dots")

    def mark(make: C) -> C:
        if not is_dataclass(make):
            raise TypeError(f"{make.__name__} must be a dataclass; put @section above @dataclass")
        hints = typing.get_type_hints(make)
        settings = []
        for each in fields(make):
            declared = each.metadata.get(_DECLARED)
            if declared is None:
                raise TypeError(f"{make.__name__}.{each.name} is not declared with setting(...)")
            kind = _kind(f"{make.__name__}.{each.name}", hints[each.name], declared)
            settings.append(
                Setting(
                    name=each.name,
                    kind=kind,
                    default=each.default,
                    declared=declared,
                )
            )
        described = Section(name=name, is_named=is_named, make=make, settings=tuple(settings))
        setattr(make, _MARK, described)
        return make

    return mark


def section_of(make: type) -> Section:
    """The section a settings class was marked as.

    Raises: TypeError for a class without `@section`.
    """
    described = make.__dict__.get(_MARK)
    if not isinstance(described, Section):
        raise TypeError(f"{make.__name__} is not marked with @section")
    return described


def _kind(where: str, hint: object, declared: Declared) -> Kind:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        members = [each for each in typing.get_args(hint) if each is not type(None)]
        if len(members) == 1:
            hint = members[0]
    if hint is str:
        return Kind.REFERENCE if declared.is_secret else Kind.ID if declared.is_id else Kind.TEXT
    if hint == tuple[str, ...]:
        return Kind.IDS if declared.is_id else Kind.TEXTS
    plain: dict[object, Kind] = {
        int: Kind.INTEGER,
        float: Kind.NUMBER,
        bool: Kind.BOOLEAN,
        Path: Kind.PATH,
    }
    kind = plain.get(hint)
    if kind is None:
        raise TypeError(f"{where}: {hint!r} is not a type a setting can have")
    return kind
