"""`fermix reload`: the running daemon takes up what changed in config.toml."""

from __future__ import annotations

from typing import Any

import click

from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.terminal import say
from fermix.cli.waiting import Waiting, patiently
from fermix.ipc.client import open_connection
from fermix.paths import Home

TIMEOUT_S = 90.0
"""Longer than one reload waits for another."""


@click.command(epilog=examples("fermix reload", "fermix reload --json"))
@json_option
def command(as_json: bool) -> None:
    """Have the running daemon take up changed settings and files of instructions.

    Answers on their way are not cut: they end with the settings they began with. What cannot change in a
    running daemon is named, it waits for `fermix restart`. A bad config.toml changes nothing.
    """
    outcome = _reload(own_home(), is_silent=as_json)
    if as_json:
        print_json(outcome)
        return
    applied, waiting = outcome.get("applied") or [], outcome.get("needs_restart") or []
    also = outcome.get("also") or []
    if not applied and not waiting and not also:
        print("Nothing changed in config.toml.")
    if applied:
        print(f"Applied: {', '.join(applied)}", flush=True)
    for sentence in also:
        print(sentence, flush=True)
    if waiting:
        print(f"Changed, but needs a restart: {', '.join(waiting)}", flush=True)
        say("It counts after: fermix restart")


def _reload(home: Home, *, is_silent: bool) -> dict[str, Any]:
    """What the daemon took up. Raises: what it says of a bad file, NotRunning, DeadlineExceeded."""
    with open_connection(home.socket) as connection, Waiting("reloading", is_silent=is_silent) as waiting:
        return patiently(connection, "reload", {}, waiting=waiting, timeout_s=TIMEOUT_S)
