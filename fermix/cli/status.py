"""`fermix status`: is it running, and how are its parts."""

from __future__ import annotations

import click

from fermix.cli.options import examples, json_option, own_home
from fermix.cli.status_report import report


@click.command(epilog=examples("fermix status", "fermix status --json"))
@json_option
def command(as_json: bool) -> None:
    """Say whether the daemon runs and how it is.

    Exit status 3 when it does not run.
    """
    report(own_home(), as_json=as_json)
