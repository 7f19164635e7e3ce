"""A terminal's output without the noise that a model pays for and cannot use.

Colours, overwritten states of progress bars, repeated lines and blocks, white space of JSON and long base64
are left out; what a person would have read on the screen stays, and each gap says what was there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

PIECE_LENGTH = 64 * 1024
"""Characters that are cleaned in one go, about: a few milliseconds."""
JSON_LIMIT_LENGTH = 256 * 1024
BASE64_LENGTH = 1000
"""Shorter runs stay: a key or a certificate is something a person may ask for."""
BLOCK_LINES = 12
"""Longest block whose repetition is looked for."""
REPEATS = 3
"""From so many on, repetition is told instead of shown."""
GROWING = 8
"""So many lines alike with growing percentages are one thing's progress; a table has fewer, in no order."""

_Alike = Callable[[str, str], bool]

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
"""Source: ECMA-48, 5th edition, sections 5.3 to 5.6 (escape and control sequences, control strings)."""
_LINE_START = re.compile(r"\x1b\[[01]?G")
"""The cursor goes back to the first column, as after a carriage return."""
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_SPINNER = re.compile(r"[\u2800-\u28ff|/\\-]")
_BAR = re.compile(r"[#=>.\-\u2500-\u259f]{4,}")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*\s?[kKMGT]?i?[Bb]?(?:/s)?")
_BLANK = re.compile(r"\s+")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s?%")
_GAUGE = re.compile(r"[#=>\u2500-\u259f]{5,}|\b(?:ETA|eta)\b")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{1000,}={0,2}")
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/_-]{57,80}={0,2}")
_JSON_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')


def clean(output: str, pause: Callable[[], None] = lambda: None) -> str:
    """`output` as a model should read it; never longer.

    `pause` is called between the pieces of a long one, so that others may run.
    """
    if (minified := _minified(output)) is not None:
        return _without_base64(minified)
    cleaned = []
    for piece in _pieces(output):
        cleaned.append(_cleaned(piece))
        pause()
    return "".join(cleaned)


def _pieces(output: str) -> Iterator[str]:
    """The output cut behind line ends into pieces of about one length."""
    at = 0
    while at < len(output):
        end = output.find("\n", at + PIECE_LENGTH) + 1 or len(output)
        yield output[at:end]
        at = end


def _cleaned(piece: str) -> str:
    end = "\n" if piece.endswith("\n") else ""
    lines: Sequence[str] = [line.rstrip() for line in _plain(piece).removesuffix("\n").split("\n")]
    for step in (_without_base64_lines, _without_states, _without_blank_runs, _without_repeats):
        lines = list(step(lines))
    return _without_base64("\n".join(lines)) + end


def _plain(output: str) -> str:
    """The characters a terminal would show, each line in its last states."""
    text = output
    if "\x1b" in text:
        text = _ESCAPE.sub("", _LINE_START.sub("\r", text))
    text = re.sub("\r+\n", "\n", text)
    if "\b" in text:
        text = "\n".join(map(_typed, text.split("\n")))
    if "\r" in text:
        text = "\n".join("\n".join(_states(line)) if "\r" in line else line for line in text.split("\n"))
    return _CONTROL.sub("", text)


def _typed(line: str) -> str:
    """A line after its backspaces, as in a manual page's bold `x\\bx`."""
    if "\b" not in line:
        return line
    shown: list[str] = []
    for char in line:
        if char != "\b":
            shown.append(char)
        elif shown:
            shown.pop()
    return "".join(shown)


def _states(line: str) -> list[str]:
    """What a line that was written over held: the last of each run of alike states."""
    kept: list[str] = []
    last_shape = None
    for state in line.split("\r"):
        if not _SPINNER.sub("", state).strip():
            continue
        shape = _shape(state)[:8]
        if shape == last_shape:
            kept.pop()
        kept.append(state)
        last_shape = shape
    return kept or [""]


def _shape(line: str) -> str:
    """What two states of one progress line have in common."""
    return _BLANK.sub(" ", _NUMBER.sub("0", _BAR.sub("=", _SPINNER.sub("-", line)))).strip()


def _minified(text: str) -> str | None:
    """A JSON document without the white space between its tokens; None when the text is none."""
    body = text.strip()
    if body[:1] not in ("{", "[") or len(body) > JSON_LIMIT_LENGTH or "\n" not in body:
        return None
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    return _JSON_SPACE.sub(r"\1", body) + text[len(text.rstrip()) :][:1]


def _without_states(lines: Sequence[str]) -> Iterator[str]:
    """Runs of lines that show one thing's progress, each by its last line."""
    for first, end in _runs(lines, lambda a, b: _is_progress(b) and _shape(a) == _shape(b)):
        if _is_progress(lines[first]) and _goes_on(lines[first:end]):
            told = f"[… {end - first - 1} earlier states of the next line …]"
            yield from _shorter([told, lines[end - 1]], lines[first:end])
        else:
            yield from lines[first:end]


def _shorter(told: Sequence[str], lines: Sequence[str]) -> Sequence[str]:
    return told if sum(map(len, told)) < sum(map(len, lines)) + len(lines) - len(told) else lines


def _is_progress(line: str) -> bool:
    return _PERCENT.search(line) is not None or _GAUGE.search(line) is not None


def _goes_on(states: Sequence[str]) -> bool:
    """Whether these are one thing's states: a gauge tells, percentages only when many of them grow."""
    if all(map(_GAUGE.search, states)):
        return len(states) >= REPEATS
    shares = [float(found[1]) for found in map(_PERCENT.search, states) if found]
    return len(shares) == len(states) >= GROWING and shares == sorted(shares)


def _without_blank_runs(lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if line or not number or lines[number - 1]:
            yield line


def _without_repeats(lines: Sequence[str]) -> Iterator[str]:
    """Lines and blocks that come again and again, once, with how often."""
    at = 0
    while at < len(lines):
        size, times = _repetition(lines, at)
        yield from lines[at : at + size]
        if times >= REPEATS:
            what = "the line above" if size == 1 else f"the {size} lines above"
            told = f"[… {what} {times - 1} more times …]"
            yield from _shorter([told], lines[at + size : at + size * times])
            at += size * times
        else:
            at += size


def _repetition(lines: Sequence[str], at: int) -> tuple[int, int]:
    """How many lines from here on repeat, and how often they stand there; (1, 1) when they do not."""
    for size in range(1, BLOCK_LINES + 1):
        if at + size * REPEATS > len(lines):
            break
        if lines[at] != lines[at + size]:
            continue
        block, times = lines[at : at + size], 1
        while lines[at + size * times : at + size * (times + 1)] == block:
            times += 1
        if times >= REPEATS and any(block):
            return size, times
    return 1, 1


def _without_base64_lines(lines: Sequence[str]) -> Iterator[str]:
    """Blocks of base64 folded into lines, as mail and certificates have them."""
    for first, end in _runs(lines, lambda a, b: _is_folded(a) and _is_folded(b) and len(a) >= len(b)):
        length = sum(map(len, lines[first:end]))
        if end - first > 1 and length >= BASE64_LENGTH and _is_base64("".join(lines[first:end])):
            yield f"{lines[first][:24]}[… base64, {length} characters …]"
        else:
            yield from lines[first:end]


def _is_folded(line: str) -> bool:
    return _BASE64_LINE.fullmatch(line) is not None


def _without_base64(text: str) -> str:
    def shortened(found: re.Match[str]) -> str:
        run = found[0]
        return f"{run[:24]}[… base64, {len(run)} characters …]" if _is_base64(run) else run

    return _BASE64.sub(shortened, text)


def _is_base64(run: str) -> bool:
    """Whether a run of its alphabet is encoded data, and neither a hexadecimal number nor one letter."""
    sample = run[:4000]
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(any(map(kind, sample)) for kind in kinds) and len(set(sample)) >= 24


def _runs(lines: Sequence[str], is_alike: _Alike) -> Iterator[tuple[int, int]]:
    """The runs of neighbours that are alike, each as first and end."""
    first = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or not is_alike(lines[at - 1], lines[at]):
            yield first, at
            first = at
