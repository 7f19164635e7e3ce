"""Messages of a conversation as a person reads them back."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import Any

from fermix.cli.terminal import escaped, is_terminal, paint


def message_lines(message: dict[str, Any]) -> str:
    """One message of a conversation: who, then what, then a blank line."""
    role = str(message.get("role") or "?")
    text = str(message.get("text") or "")
    who = paint({"user": "you", "assistant": "fermix"}.get(role, role), "bold", sys.stdout)
    when = paint(moment(message.get("created_ms")), "dim", sys.stdout)
    return f"{who}  {when}\n{escaped(text) if is_terminal(sys.stdout) else text}\n"


def moment(milliseconds: object) -> str:
    """A time of day for today, else a date."""
    if not isinstance(milliseconds, int):
        return ""
    then = datetime.fromtimestamp(milliseconds / 1000).astimezone()
    is_today = then.date() == datetime.fromtimestamp(time.time()).astimezone().date()
    return then.strftime("%H:%M" if is_today else "%Y-%m-%d")
