"""`fermix run` as the command line knows it; `__main__` runs the daemon itself."""

from __future__ import annotations

import os

import click

from fermix.cli.options import examples
from fermix.process.program import own_command


@click.command(epilog=examples("fermix run", "fermix run --private"))
@click.option("--private", is_flag=True, help="Only this machine's command line; leaves when idle.")
def command(private: bool) -> None:
    """Run the daemon in the foreground."""
    # `__main__` takes every well-formed `run` before the command line is looked at, since the
    # daemon must be patched before anything else is imported. What comes here was written in a
    # way it does not know (an option twice); start over with the plain form.
    words = ("run", "--private") if private else ("run",)
    argv = (*own_command(os.environ), *words)
    os.execv(argv[0], argv)
