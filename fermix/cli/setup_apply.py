"""Brings what setup, or the choice of a model, wrote to a daemon that runs already."""

from __future__ import annotations

from typing import Any

from fermix.cli.gone import wait_until_gone
from fermix.errors import FermixError, NotRunning
from fermix.ipc.client import open_connection
from fermix.paths import Home

_ANSWER_S = 30.0
_GONE_S = 10.0


def apply_to_running(home: Home, *, has_changed: bool) -> dict[str, Any]:
    """What the home's daemon did about it: `state`, and a `hint` for what is left to the person.

    A private daemon is sent away: the next command starts one that reads the new settings.
    """
    try:
        with open_connection(home.socket) as connection:
            if not has_changed:
                return {"state": "running", "hint": None}
            if connection.call("status", {}, _ANSWER_S).get("mode") == "private":
                pid = connection.peer_pid()
                connection.call("stop", {"only_private": True}, _ANSWER_S)
                wait_until_gone(pid, _GONE_S)
                return {"state": "stopped", "hint": None}
            waiting = connection.call("reload", {}, _ANSWER_S).get("needs_restart")
    except NotRunning:
        return {"state": "not_running", "hint": None}
    except FermixError as error:
        return {"state": "unchanged", "hint": f"It counts after: fermix restart ({error.message})"}
    hint = f"These count after fermix restart: {', '.join(map(str, waiting))}" if waiting else None
    return {"state": "reloaded", "hint": hint}
