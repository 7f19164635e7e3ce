"""The machine's clock, against what was written here before and when this program was made."""

from __future__ import annotations

import calendar
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene
from fermix.setup.doctor.store import opened

TOPIC = Topic("clock")
MADE_S = calendar.timegm((2026, 11, 1, 0, 0, 0))
"""No fermix with this file is older."""
OLDEST_S = MADE_S + 20 * 365 * 86_400
BEHIND_S = 300.0
"""Clocks of networked machines agree far better; less may be a correction."""
TAIL_BYTES = 64 * 1024
HINT = "timedatectl set-ntp true; date"

_LINE = re.compile(rb"^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})\.\d+Z ", re.MULTILINE)
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Source: https://github.com/ulid/spec, the alphabet; the first ten signs are milliseconds."""


def look(scene: Scene) -> list[Finding]:
    """Whether the clock shows a time that can be."""
    now_s = scene.now_s
    if now_s < MADE_S:
        return [TOPIC.fail(f"The clock shows {_said(now_s)}, which is before this fermix was made.", HINT)]
    if now_s > OLDEST_S:
        return [TOPIC.fail(f"The clock shows {_said(now_s)}, which is decades from now.", HINT)]
    behind = [(made_s, what) for made_s, what in _written(scene) if made_s > now_s + BEHIND_S]
    if behind:
        newest_s, what = max(behind)
        return [
            TOPIC.fail(
                f"The clock shows {_said(now_s)}, but {what} was written at {_said(newest_s)}: "
                "it was wrong then or is wrong now.",
                HINT,
            )
        ]
    return [TOPIC.ok(f"The clock shows {_said(now_s)}.")]


def _written(scene: Scene) -> Iterator[tuple[float, str]]:
    """When the newest things of the home were written, by their own words."""
    if (logged_s := _logged_s(scene.home.log)) is not None:
        yield logged_s, f"the log '{scene.home.log}'"
    with (
        suppress(sqlite3.Error, OSError),
        opened(scene.home, is_used=scene.status is not None) as connection,
    ):
        for table in ("inbox", "messages"):
            # The key's own index answers; ids begin with the time.
            (newest,) = connection.execute(f"SELECT max(id) FROM {table}").fetchone()
            if newest is not None and (made_s := _made_s(str(newest))) is not None:
                yield made_s, f"a row of '{scene.home.database}'"


def _logged_s(path: Path) -> float | None:
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - TAIL_BYTES))
            found = _LINE.findall(log.read(TAIL_BYTES))
    except OSError:
        return None
    times = []
    for each in found:
        with suppress(ValueError):
            times.append(calendar.timegm(time.strptime(each.decode(), "%Y-%m-%dT%H:%M:%S")))
    return max(times, default=None)


def _made_s(ulid: str) -> float | None:
    """None for what is no id of ours."""
    number = 0
    for sign in ulid[:10].upper():
        digit = _DIGITS.find(sign)
        if digit < 0:
            return None
        number = number * 32 + digit
    return number / 1000


def _said(moment_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(moment_s))
