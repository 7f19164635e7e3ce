"""`fermix tokens`: what devices prove themselves with over HTTP."""

from __future__ import annotations

import sys
from typing import Any

import click

from fermix.cli.door import Door
from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.terminal import one_line
from fermix.cli.transcript import moment

_TIMEOUT_S = 60.0


@click.group(
    cls=Group,
    epilog=examples("fermix tokens create laptop", "fermix tokens list", "fermix tokens revoke laptop"),
)
def group() -> None:
    """Let other devices talk to fermix over HTTP.

    Programs on this machine use the token in the file api-token of the home.
    """


@group.command(
    "create",
    epilog=examples("fermix tokens create laptop", "fermix tokens create ci --json | jq -r .token"),
)
@click.argument("name", metavar="NAME")
@json_option
def create(name: str, as_json: bool) -> None:
    """Make a token and print it, once: only its hash is kept."""
    answer = _call("tokens.create", {"name": name}, is_silent=as_json)
    if as_json:
        print_json(answer)
        return
    print(answer["token"], flush=True)
    print(
        f"This is the token of {one_line(name, 64)!r}. It is shown this once; send it as\n"
        "Authorization: Bearer TOKEN. Take it back with: "
        f"fermix tokens revoke {one_line(name, 64)}",
        file=sys.stderr,
    )


@group.command("list", epilog=examples("fermix tokens list", "fermix tokens list --json"))
@json_option
def list_tokens(as_json: bool) -> None:
    """List the devices that have a token, and when each was last used."""
    answer = _call("tokens.list", {}, is_silent=as_json)
    if as_json:
        print_json(answer)
        return
    tokens = answer.get("tokens") or []
    if not tokens:
        print("No device has a token. Make one with: fermix tokens create NAME")
    width = max((len(each["name"]) for each in tokens), default=0)
    for each in tokens:
        used = each.get("last_used_ms")
        used_text = f"used {moment(used)}" if used is not None else "never used"
        print(f"{each['name']:<{width}}  made {moment(each['created_ms'])}  {used_text}")


@group.command("revoke", epilog=examples("fermix tokens revoke laptop"))
@click.argument("name", metavar="NAME")
@json_option
def revoke(name: str, as_json: bool) -> None:
    """Take a token back; what it has open ends at once."""
    answer = _call("tokens.revoke", {"name": name}, is_silent=as_json)
    if as_json:
        print_json(answer)
    else:
        print(f"The token of {one_line(name, 64)!r} counts no more.")


def _call(method: str, params: dict[str, Any], *, is_silent: bool) -> dict[str, Any]:
    # A private daemon does: a full one that others may reach does not start before there is a token.
    with Door(own_home(), starts_private=True, is_silent=is_silent).open() as connection:
        return connection.call(method, params, _TIMEOUT_S)
