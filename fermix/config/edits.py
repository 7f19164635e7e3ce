"""Changes single keys of a TOML text and leaves every other character as it was."""

from __future__ import annotations

import codecs
import copy
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fermix.config.source import Source, parse_source
from fermix.errors import ConfigError

if TYPE_CHECKING:
    # At run time tomlkit is imported where an edit is made: no other command should pay for it.
    from tomlkit import TOMLDocument
    from tomlkit.items import Table


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: the key's path, and its TOML value; None takes the key (or a whole table) out."""

    path: tuple[str, ...]
    value: object | None


def edited(source: Source, edits: Sequence[Edit]) -> bytes:
    """The file's new content: comments, order, line ends and a byte-order mark are kept.

    Raises: ConfigError when the file is written in a way that no single key can be changed in.
    """
    text = source.text
    has_crlf = "\r\n" in text and text.count("\r\n") == text.count("\n")
    if has_crlf:
        text = text.replace("\r\n", "\n")
    expected = copy.deepcopy(source.document)
    for edit in edits:
        text = _apply(text, edit)
        _apply_plainly(expected, edit)
    body = (text.replace("\n", "\r\n") if has_crlf else text).encode()
    raw = codecs.BOM_UTF8 + body if source.raw.startswith(codecs.BOM_UTF8) else body
    # tomlkit is trusted with the layout, not with the meaning.
    if _without_empty(parse_source(source.path, raw).document) != _without_empty(expected):
        keys = ", ".join(".".join(edit.path) for edit in edits)
        raise ConfigError(
            f"{source.path} cannot be changed at {keys} without changing more; edit it by hand."
        )
    return raw


def _apply(text: str, edit: Edit) -> str:
    import tomlkit
    from tomlkit.items import InlineTable, Table

    document = _parse(text)
    *names, key = edit.path
    table: MutableMapping[str, Any] = document  # Any: tomlkit's own items
    parents: list[tuple[MutableMapping[str, Any], str]] = []
    for name in names:
        if name not in table:
            if edit.value is None:
                return text
            if not isinstance(table, InlineTable):
                return _with_table(text, names, key, edit.value)
            table[name] = {}
        parents.append((table, name))
        below: object = table[name]
        if not isinstance(below, MutableMapping):
            return text
        table = below
    if edit.value is not None:
        _put(table, key, edit.value)
    elif key in table:
        del table[key]
        for above, name in reversed(parents):
            found = above[name]
            if not isinstance(found, Table) or found or any(not blank for blank in _blanks(found)):
                break
            del above[name]
    return tomlkit.dumps(document)


def _parse(text: str) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as exc:
        # tomllib took it, so it is TOML; tomlkit is stricter here and there, and nests less deeply.
        raise ConfigError(f"config.toml is written in a way that cannot be edited: {exc}.") from exc


def _put(table: MutableMapping[str, Any], key: str, value: object) -> None:
    """Replace a value, or add it below the table's last key: what stands after a blank line is the
    introduction of the next table, and tomlkit would add the key below that."""
    from tomlkit.items import Comment, Table, Whitespace

    if key in table or not isinstance(table, Table):
        table[key] = value
        return
    body = table.value.body
    last = max((at for at, (name, _) in enumerate(body) if name is not None), default=-1)
    cut = next((at for at in range(last + 1, len(body)) if isinstance(body[at][1], Whitespace)), len(body))
    rest = body[cut:]
    del body[cut:]
    table.add(key, value)
    for _, item in rest:
        if isinstance(item, Whitespace | Comment):
            table.add(item)


def _with_table(text: str, names: list[str], key: str, value: object) -> str:
    """The text with a new table at its end."""
    import tomlkit

    end = "" if not text or text.endswith("\n") else "\n"
    blank = "\n" if text.strip() else ""
    header = ".".join(tomlkit.key(name).as_string() for name in names)
    line = tomlkit.dumps({key: value})
    return f"{text}{end}{blank}[{header}]\n{line}" if names else f"{line}{text}"


def _blanks(table: Table) -> list[bool]:
    from tomlkit.items import Null, Whitespace

    return [isinstance(item, Whitespace | Null) for _, item in table.value.body]


def _apply_plainly(document: dict[str, object], edit: Edit) -> None:
    *names, key = edit.path
    for name in names:
        below = document.setdefault(name, {})
        if not isinstance(below, dict):
            return
        document = below
    if edit.value is None:
        document.pop(key, None)
    else:
        document[key] = edit.value


def _without_empty(value: object) -> object:
    if not isinstance(value, dict):
        return value
    pruned = {name: _without_empty(each) for name, each in value.items()}
    return {name: each for name, each in pruned.items() if each != {}}
