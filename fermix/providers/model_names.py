"""Names of models: read from a list, picked for whoever named none, suggested for a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import msgspec

KEPT = 200
SUGGESTED = 5


def read_names(body: bytes) -> tuple[str, ...] | None:
    """The model names in a list of models, at most 200; None when it is none."""
    try:
        listed = msgspec.json.decode(body, type=_Listed)
    except (msgspec.DecodeError, RecursionError):
        return None
    if listed.data is None and listed.models is None:
        return None
    found = (model.id or model.name for model in (*(listed.data or ()), *(listed.models or ())))
    names = dict.fromkeys(name for name in found if name and name.isprintable())
    return tuple(names)[:KEPT]


class _Model(msgspec.Struct):
    id: str = ""
    name: str = ""
    """In its place on Ollama's list."""


class _Listed(msgspec.Struct):
    data: list[_Model] | None = None
    models: list[_Model] | None = None


_NO_CHAT = ("embed", "whisper", "tts", "dall-e", "image", "moderation", "transcribe", "realtime", "audio")


def pick(models: Sequence[str], preferred: Sequence[str]) -> str | None:
    """The model to ask when nobody named one; None when there is nothing to choose from.

    A preferred name counts whole, or as the beginning of a dated one (`name-2026-01-01`).
    """
    for wanted in preferred:
        if wanted in models:
            return wanted
    for wanted in preferred:
        dated = sorted(name for name in models if name.startswith(f"{wanted}-") and name[-1].isdigit())
        if dated:
            return dated[-1]
    chatting = [name for name in models if not any(word in name.lower() for word in _NO_CHAT)]
    if chatting:
        return chatting[0]
    return preferred[0] if preferred and not models else None


def nearest(model: str, models: Sequence[str]) -> list[str]:
    """The names most like `model`, also where only what follows a vendor's prefix is alike."""
    by_end = {name.rpartition("/")[2].lower(): name for name in reversed(models)}
    whole = {name.lower(): name for name in models}
    wanted = model.lower()
    ends = difflib.get_close_matches(wanted.rpartition("/")[2], by_end, SUGGESTED, 0.6)
    wholes = difflib.get_close_matches(wanted, whole, SUGGESTED, 0.6)
    near = dict.fromkeys([*(whole[each] for each in wholes), *(by_end[each] for each in ends)])
    return list(near)[:SUGGESTED]
