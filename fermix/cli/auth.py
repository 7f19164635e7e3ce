"""`fermix auth`: sign in at a vendor with an account instead of a key."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from typing import Any

import click

from fermix.cli.door import Door
from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.terminal import one_line, say
from fermix.cli.transcript import moment
from fermix.errors import OwnerError
from fermix.ipc.client import Result

DEFAULT = "openai_codex"
_TIMEOUT_S = 60.0
_LOGIN_S = 930.0
"""The daemon itself gives up after 900 s."""


@click.group(
    cls=Group,
    epilog=examples("fermix auth login", "fermix auth status", "fermix auth logout openai_codex"),
)
def group() -> None:
    """Sign in at a vendor with an account instead of a key."""


@group.command(
    epilog=examples("fermix auth login", "fermix auth login --device", "fermix auth login openai_codex")
)
@click.argument("name", metavar="[NAME]", default=DEFAULT)
@click.option("--device", is_flag=True, help="With a code that is typed in a browser anywhere.")
@json_option
def login(name: str, device: bool, as_json: bool) -> None:
    """Sign in to a provider; its tokens stay in auth.json of the home.

    Without --device a browser on this machine is needed: it comes back to fermix by itself.
    """
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        for answer in connection.stream("auth.login", {"name": name, "device": device}, _LOGIN_S):
            if isinstance(answer, Result):
                _tell_login(answer.data, as_json=as_json)
                return
            _show(answer.name, answer.data, as_json=as_json)
    raise OwnerError("The daemon ended the sign-in without a word.", hint="fermix logs")


@group.command(epilog=examples("fermix auth status", "fermix auth status --json"))
@json_option
def status(as_json: bool) -> None:
    """List who is signed in, where, and until when without a renewal."""
    answer = _call("auth.status", {}, is_silent=as_json)
    if as_json:
        print_json(answer)
        return
    sign_ins = answer.get("sign_ins") or []
    if not sign_ins:
        print(f"Nobody is signed in. Sign in with: fermix auth login {DEFAULT}")
    for each in sign_ins:
        if each.get("ended"):
            print(f"{each['name']}  ended: {one_line(each['ended'], 200)}")
            say(f"Sign in anew with: fermix auth login {each['name']}")
            continue
        print(f"{each['name']}  {_who(each)}  since {moment(each['signed_in_ms'])}{_until(each)}")


@group.command(epilog=examples("fermix auth logout", "fermix auth logout openai_codex --json"))
@click.argument("name", metavar="[NAME]", default=DEFAULT)
@json_option
def logout(name: str, as_json: bool) -> None:
    """Forget a sign-in at once, and tell the vendor that its tokens are to count no more."""
    answer = _call("auth.logout", {"name": name}, is_silent=as_json)
    if as_json:
        print_json(answer)
    elif not answer.get("was_signed_in"):
        print(f"Nobody was signed in to {one_line(name, 64)!r}.")
    else:
        print(f"Signed out of {one_line(name, 64)!r}.", flush=True)
        if not answer.get("issuer_told"):
            say("The vendor could not be told; its tokens run out by themselves.")


def _show(event: str, data: dict[str, Any], *, as_json: bool) -> None:
    """Where the person goes, and with what. On stderr with --json, so that stdout stays one object."""
    url = one_line(str(data.get("url", "")), 4000)
    write = say if as_json else partial(print, flush=True)  # a pipe would keep it until the end
    if event == "code":
        code = one_line(str(data.get("code", "")), 100)
        write(f"Open this address in any browser:\n  {url}\nand type this code there:\n  {code}")
        return
    write(f"Sign in with a browser on this machine:\n  {url}")
    if not as_json:
        _open_browser(url)
        say("Waiting for the browser … On a machine without one: fermix auth login --device")


def _open_browser(url: str) -> None:
    """Try to show the page; the address stands in the terminal in any case."""
    opener = shutil.which("xdg-open") or shutil.which("open")
    if opener is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    quiet = subprocess.DEVNULL
    subprocess.Popen([opener, url], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def _tell_login(data: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(data)
        return
    name = str(data["name"])
    print(f"Signed in to {name}: {_who(data)}.")
    say(f"Let it answer with: fermix config set provider.name {name} (and providers.{name}.model MODEL)")


def _who(data: dict[str, Any]) -> str:
    account = one_line(str(data.get("account") or "an account without a name"), 100)
    plan = data.get("plan")
    return f"{account} ({one_line(str(plan), 40)})" if plan else account


def _until(data: dict[str, Any]) -> str:
    until = data.get("expires_ms")
    return "" if until is None else f", next renewal before {moment(until)}"


def _call(method: str, params: dict[str, Any], *, is_silent: bool) -> dict[str, Any]:
    with Door(own_home(), starts_private=True, is_silent=is_silent).open() as connection:
        return connection.call(method, params, _TIMEOUT_S)
