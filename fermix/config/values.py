"""One setting's value: from TOML to Python, from the command line's text, and back to text."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Never

from fermix.config.declare import Kind, Setting
from fermix.config.references import secret_name
from fermix.errors import SettingInvalid

_SHOWN_LENGTH = 60
_LARGEST = 2**63 - 1


def decode(
    setting: Setting, value: object, *, key: str, place: Callable[[], str], user_home: str
) -> object:
    """The Python value of a TOML value.

    key: the setting's full name; place: gives the file and line; both for the message.
    user_home: what `~` stands for.
    Raises: SettingInvalid naming the value, what was expected, and the place.
    """
    decoded = _decode(setting, value, user_home)
    expected = setting.expected() if decoded is None else _objection(setting, decoded)
    if expected is not None:
        _refuse(setting, value, key=key, place=place(), expected=expected)
    return decoded


def parse(setting: Setting, text: str, *, key: str) -> object:
    """The TOML value of what was typed after `config set KEY`.

    A list is written `a,b` or as TOML (`["a", "b"]`).
    Raises: SettingInvalid when the text is not of the setting's kind; its range is checked by `decode`.
    """
    match setting.kind:
        case Kind.BOOLEAN if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case Kind.INTEGER if re.fullmatch(r"[+-]?\d[\d_]{0,30}", text, re.ASCII):
            return int(text)
        case Kind.NUMBER if re.fullmatch(r"[+-]?[\d_]+(\.\d+)?([eE][+-]?\d+)?", text, re.ASCII):
            return float(text) if re.search(r"[.eE]", text) else int(text)
        case Kind.TEXTS | Kind.IDS:
            return _parse_list(setting, text, key=key)
        case Kind.BOOLEAN | Kind.INTEGER | Kind.NUMBER:
            _refuse(setting, text, key=key, place="", expected=setting.expected())
    return text


def plain(value: object) -> object:
    """A decoded value as JSON and TOML know it."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def written(value: object) -> str:
    """A decoded value as it would be written in config.toml; None as `(not set)`."""
    value = plain(value)
    if value is None:
        return "(not set)"
    # JSON's strings, numbers, booleans and lists of strings are also TOML's.
    return json.dumps(value, ensure_ascii=False)


def _decode(setting: Setting, value: object, user_home: str) -> object:
    """None: not of the declared kind."""
    match setting.kind:
        case Kind.BOOLEAN:
            return value if isinstance(value, bool) else None
        case Kind.INTEGER:
            good = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
            return value if good else None
        case Kind.NUMBER:
            good = isinstance(value, int | float) and not isinstance(value, bool)
            return _finite(value) if good else None
        case Kind.TEXT:
            return _text(value)
        case Kind.PATH:
            return _path(value, user_home)
        case Kind.ID:
            return _id(value)
        case Kind.REFERENCE:
            return value if isinstance(value, str) and secret_name(value) else None
        case Kind.TEXTS | Kind.IDS:
            if not isinstance(value, list):
                return None
            items = [_id(each) if setting.kind is Kind.IDS else _text(each) for each in value]
            return None if None in items else tuple(items)


def _finite(value: object) -> float | None:
    if isinstance(value, int) and abs(value) <= _LARGEST:
        return float(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and "\0" not in value else None


def _id(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return str(value)
    text = _text(value)
    return text.strip() or None if text is not None else None


def _path(value: object, user_home: str) -> Path | None:
    text = _text(value)
    if text is None:
        return None
    if text == "~" or text.startswith("~/"):
        text = user_home + text[1:]
    return Path(text) if text.startswith("/") else None


def _objection(setting: Setting, decoded: object) -> str | None:
    """What was expected instead; None when the value is good."""
    declared = setting.declared
    if isinstance(decoded, int | float) and not isinstance(decoded, bool):
        too_small = declared.minimum is not None and decoded < declared.minimum
        too_large = declared.maximum is not None and decoded > declared.maximum
        if too_small or too_large:
            return setting.expected()
    if declared.choices:
        chosen = decoded if isinstance(decoded, tuple) else (decoded,)
        if any(each not in declared.choices for each in chosen):
            return setting.expected()
    return declared.check(decoded) if declared.check is not None else None


def _parse_list(setting: Setting, text: str, *, key: str) -> object:
    if not text.lstrip().startswith("["):
        return [each.strip() for each in text.split(",") if each.strip()]
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        _refuse(setting, text, key=key, place="", expected=setting.expected())


def _refuse(setting: Setting, value: object, *, key: str, place: str, expected: str) -> Never:
    # What stands where a secret's name belongs may be the secret itself: never shown.
    shown = "this text" if setting.kind is Kind.REFERENCE else _shown(value)
    message = f"{key!r} cannot be {shown}{f' ({place})' if place else ''}. Expected {expected}."
    if setting.kind is Kind.REFERENCE:
        name = key.rpartition(".")[2].replace("_", "-")
        raise SettingInvalid(
            message,
            hint=f"Keep the secret out of config.toml: fermix secrets set {name}, "
            f"then: fermix config set {key} @secret:{name}",
        )
    raise SettingInvalid(message, hint=f"fermix config set {key} VALUE")


def _shown(value: object) -> str:
    words = {dict: "a table", list: "a list"}
    if isinstance(value, dict | list) and len(str(value)) > _SHOWN_LENGTH:
        return words[type(value)]
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 1] + "…"
