"""`fermix version` (normally answered by `__main__` before this is imported)."""

from __future__ import annotations

import click

from fermix import __version__
from fermix.cli.options import examples, json_option, print_json


@click.command(epilog=examples("fermix version", "fermix version --json"))
@json_option
def command(as_json: bool) -> None:
    """Print the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        print(f"fermix {__version__}")
