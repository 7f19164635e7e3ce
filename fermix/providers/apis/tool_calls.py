"""Tool calls put together from the pieces a stream sends, however oddly it numbers them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fermix.errors import Unreadable
from fermix.messages import ToolCall

CALLS_LIMIT = 128
ARGUMENTS_LIMIT_BYTES = 1024 * 1024
DEPTH_LIMIT = 64
_WRITTEN = re.compile(
    r"(?:<tool_call>\s*|```(?:json)?\s*)?(?P<call>\{.*\})(?:\s*</tool_call>|\s*```)?", re.DOTALL
)
NAME_LIMIT = 200
"""Longest name and longest id; both stand in logs, decisions and every request after it."""


@dataclass(slots=True)
class _Open:
    """A call that may still grow."""

    index: int | None
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    size: int = 0
    _scanned: int = 0
    _depth: int = 0
    _is_in_text: bool = False
    _is_escaped: bool = False

    def has_whole_arguments(self) -> bool:
        """Whether the pieces so far close what they opened, so that more text is another call's.

        Each piece is looked at once, however often this is asked: a server must not be able to
        make us read a megabyte again for every byte it adds.
        """
        for piece in self.pieces[self._scanned :]:
            for char in piece:
                self._scan(char)
        self._scanned = len(self.pieces)
        return bool(self.pieces) and self._depth == 0 and not self._is_in_text

    def _scan(self, char: str) -> None:
        if self._is_escaped:
            self._is_escaped = False
        elif self._is_in_text:
            self._is_escaped = char == "\\"
            self._is_in_text = char != '"'
        elif char == '"':
            self._is_in_text = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1


class ToolCallAssembler:
    """Adds deltas up to calls.

    Seen in the field: no index at all; index 0 for every parallel call; arguments under a new
    index without id or name; the name or id repeated in every delta; no ids.
    """

    def __init__(self) -> None:
        self._calls: list[_Open] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, index: int | None, id: str, name: str, arguments: str) -> None:
        """Take one delta; empty texts mean that the delta did not carry that part.

        Raises: Unreadable when there are more calls than one answer may have.
        """
        call = self._continued(index, id, name)
        if call is None:
            if len(self._calls) >= CALLS_LIMIT:
                raise Unreadable(f"The answer has more than {CALLS_LIMIT} tool calls.")
            call = _Open(index, id, name)
            self._calls.append(call)
        else:
            call.id = call.id or id
            if name and name != call.name and not call.pieces and len(call.name) <= NAME_LIMIT:
                call.name += name
        call.size += len(arguments)
        if arguments and call.size <= ARGUMENTS_LIMIT_BYTES:
            call.pieces.append(arguments)

    def _continued(self, index: int | None, id: str, name: str) -> _Open | None:
        """The open call a delta belongs to; None when it begins a new one."""
        if not self._calls:
            return None
        known = next((call for call in reversed(self._calls) if id and call.id == id), None)
        if known is not None and (not name or index is None or known.index == index):
            return known
        same_index = [call for call in self._calls if index is not None and call.index == index]
        call = same_index[-1] if same_index else self._calls[-1]
        if not name:
            # An unknown id without a name: some servers invent a fresh id for every delta.
            return call if same_index or not id else None
        if id and call.id:
            return None
        if index is not None and not same_index:
            return None
        if (
            call.name
            and (name != call.name or call.has_whole_arguments())
            and (call.pieces or index is None)
        ):
            return None
        return call

    def calls(self, *, was_cut: bool, names: dict[str, str]) -> tuple[ToolCall, ...]:
        """The finished calls; `names` maps names on the wire back to ours.

        `was_cut`: the answer hit its output limit, so none of its calls may run.
        """
        seen: set[str] = set()
        finished = []
        for call in self._calls:
            is_usable = 0 < len(call.id) <= NAME_LIMIT and call.id not in seen
            id = call.id if is_usable else f"call_{os.urandom(12).hex()}"
            seen.add(id)
            arguments, broken = read_arguments("".join(call.pieces))
            if call.size > ARGUMENTS_LIMIT_BYTES:
                arguments, broken = {}, f"The arguments are larger than {ARGUMENTS_LIMIT_BYTES} bytes."
            if was_cut:
                arguments, broken = {}, "The call was cut off by the output limit; make it shorter."
            name = names.get(call.name, call.name)
            if not name:
                name, broken = "unnamed", "The call names no tool."
            elif len(name) > NAME_LIMIT:
                name, arguments = name[:NAME_LIMIT], {}
                broken = f"The tool's name is longer than {NAME_LIMIT} characters."
            finished.append(ToolCall(id=id, name=name, arguments=arguments, broken=broken))
        return tuple(finished)


class _WrittenCall(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None


_CALL = msgspec.json.Decoder(_WrittenCall)


def written_call(text: str, names: Mapping[str, str]) -> ToolCall | None:
    """The call that a small model wrote down as its whole answer instead of making it; None for words.

    Only one JSON object `{"name", "arguments" or "parameters"}` of an offered tool counts, bare, in a code
    block or in `<tool_call>` tags. `names` maps names on the wire to ours.
    """
    found = _WRITTEN.fullmatch(text.strip()) if len(text) <= ARGUMENTS_LIMIT_BYTES else None
    if found is None:
        return None
    try:
        call = _CALL.decode(found["call"])
    except (msgspec.DecodeError, RecursionError):
        return None
    given = call.arguments if call.arguments is not None else call.parameters
    if call.name not in names or given is None:
        return None
    arguments, broken = read_arguments(msgspec.json.encode(given).decode())
    return ToolCall(f"call_{os.urandom(12).hex()}", names[call.name], arguments, broken)


def read_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The arguments object in `text`, and why it could not be read (then the object is empty).

    Nothing, blanks and `null` mean no arguments; an object packed into a JSON string is unpacked.
    """
    if not text.strip():
        return {}, None
    try:
        value = msgspec.json.decode(text)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, f"The arguments are not valid JSON ({error}): {text[:200]!r}."
    if value is None:
        return {}, None
    if not isinstance(value, dict):
        return {}, f"The arguments must be one JSON object, got {text[:200]!r}."
    if _is_deeper(value, DEPTH_LIMIT):
        return {}, f"The arguments are nested deeper than {DEPTH_LIMIT} levels."
    return value, None


def _is_deeper(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
