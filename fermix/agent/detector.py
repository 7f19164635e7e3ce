"""Notices when a turn goes in circles: by tool, arguments and result, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from fermix.messages import ToolCall, ToolMessage

SAME_FAILURES = 3
"""Steps in a row that asked for the same and failed the same; then the turn ends."""
SAME_RESULTS = 6
"""Steps in a row that brought nothing this turn had not seen already; then the turn ends."""
SAME_CALLS = 20
"""Steps in a row that only asked again, whatever came of it: a clock in a result makes no progress."""
ALL_FAILED = 12
"""Steps in a row in which every call failed, each in its own way."""
HINT_SAME = 3
"""From here the model is told that it repeats itself."""
HINT_CALLS = 10

_Asked = tuple[str, bytes]

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True)
class Detector:
    """What one turn has asked for and got; `step` says when it is enough."""

    _seen: Counter[tuple[_Asked, int]] = field(default_factory=Counter)
    _asked: Counter[_Asked] = field(default_factory=Counter)
    _known: list[tuple[bool, bool]] = field(default_factory=list)
    """Of each call of this step: whether it, and whether it with this result, came before."""
    _last: list[_Asked] = field(default_factory=list)
    _step: list[_Asked] = field(default_factory=list)
    _same_failures: int = 0
    _same_results: int = 0
    _same_calls: int = 0
    _all_failed: int = 0

    def heard(self, call: ToolCall, result: ToolMessage) -> str | None:
        """Take note of a result; what the model should be told with it, None when it is nothing."""
        asked = (call.name, _encode((call.arguments, call.broken)))
        got = (asked, hash((result.is_error, result.text)))
        self._known.append((asked in self._asked, got in self._seen))
        self._step.append(asked)
        self._asked[asked] += 1
        self._seen[got] += 1
        if (times := self._seen[got]) >= HINT_SAME or (result.is_error and times >= HINT_SAME - 1):
            return f"The same call had the same result {times} times in this turn. Do something else."
        if (times := self._asked[asked]) >= HINT_CALLS:
            return f"The same call was made {times} times in this turn. Go on only if that is what helps."
        return None

    def step(self, results: Sequence[ToolMessage]) -> str | None:
        """End a step, with its results; why the turn should end, None when it may go on."""
        failed = all(result.is_error for result in results)
        is_same = self._step == self._last
        known, self._known = self._known, []
        self._last, self._step = self._step, []
        self._all_failed = self._all_failed + 1 if failed else 0
        self._same_failures = (self._same_failures + 1 if is_same else 1) if failed else 0
        self._same_results = self._same_results + 1 if all(got for _, got in known) else 0
        self._same_calls = self._same_calls + 1 if all(asked for asked, _ in known) else 0
        name = results[-1].name if results else "it"
        if self._same_failures >= SAME_FAILURES:
            said = results[-1].text
            return f"{name} failed {SAME_FAILURES} times in the same way. It said: {said}"
        if self._same_results >= SAME_RESULTS - 1:
            return f"The same calls brought the same results again and again, {name} the last."
        if self._same_calls >= SAME_CALLS - 1:
            return f"Nothing new was asked for in {SAME_CALLS} steps, only {name} again."
        if self._all_failed >= ALL_FAILED:
            return f"Every call failed in {ALL_FAILED} steps in a row. {name} said: {results[-1].text}"
        return None
