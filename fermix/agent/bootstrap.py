"""The owner's own words for the agent: three files of the home, seeded once and never written again."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from fermix.config.regular import open_regular
from fermix.errors import ConfigError

LIMIT_BYTES = 16_384
"""Longest text of one file that a model is given; every call pays for it."""

IDENTITY = "You are fermix, a personal agent that runs on its owner's own machine and acts through tools."
RULES = """\
Answer in the language you are addressed in, briefly and to the point, in Markdown.
Use a tool when it gives a better answer than memory; say what you did and what really came of it.
When a tool fails or a result is cut, say so. Never invent results."""
PERSONA = "Be friendly, plain and honest. No flattery, no filler."

_ABOUT = """\
<!-- {what} Yours to change: fermix never writes this file again, reads it when it starts and at
`fermix reload`, and leaves out what stands between these marks. -->
"""
_FILES = {
    "IDENTITY.md": ("Who the agent is.", IDENTITY),
    "RULES.md": ("How it works.", RULES),
    "PERSONA.md": ("How it sounds.", PERSONA),
}


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What the files say, comments left out; empty for a file that is empty or was removed."""

    identity: str = IDENTITY
    rules: str = RULES
    persona: str = PERSONA
    problems: tuple[str, ...] = ()
    """What could not be taken as it is, one sentence each."""


def seed(folder: Path) -> None:
    """Make the folder with its files, all at once; one that is there stays as it is.

    Raises: OSError.
    """
    if os.path.lexists(folder):
        return
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    made = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(made, ignore_errors=True)  # of a start that was killed
    made.mkdir(mode=0o700)
    for name, (what, text) in _FILES.items():
        path = made / name
        path.write_text(f"{_ABOUT.format(what=what)}\n{text}\n", "utf-8")
        path.chmod(0o600)
    made.rename(folder)


def read(folder: Path) -> Bootstrap:
    """What the files say now.

    A file that cannot be read is replaced by what fermix would have seeded, one that is too long is cut;
    `problems` names both.
    """
    problems: list[str] = []

    def text_of(name: str) -> str:
        path = folder / name
        try:
            with open_regular(path) as file:
                raw = file.read(LIMIT_BYTES + 1)
            # the cut may go through a character
            text = raw[:LIMIT_BYTES].decode("utf-8", "ignore" if len(raw) > LIMIT_BYTES else "strict")
        except FileNotFoundError:
            return ""
        except (OSError, ConfigError, UnicodeDecodeError) as error:
            why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error
            problems.append(f"'{path}' cannot be read ({why}); the built-in words count instead.")
            return _FILES[name][1]
        if len(raw) > LIMIT_BYTES:
            problems.append(f"'{path}' is longer than {LIMIT_BYTES} bytes; its end is left out.")
        return without_comments(text)

    identity, rules, persona = map(text_of, _FILES)
    return Bootstrap(identity, rules, persona, tuple(problems))


def without_comments(text: str) -> str:
    """`text` without HTML comments and without blanks around it; one that is not closed goes to the end."""
    kept: list[str] = []
    while text:
        before, _, rest = text.partition("<!--")
        kept.append(before)
        text = rest.partition("-->")[2]
    return "".join(kept).strip()
