"""`fermix secrets`: keeps keys and passwords, in the system's keyring or in private files."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fermix.cli.asking import ask_hidden, can_ask, read_secret_from_stdin, secret_text
from fermix.cli.completing import secret_files
from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.terminal import say
from fermix.config.home import prepare_home
from fermix.config.references import environment_variable
from fermix.daemon.sections import load_settings
from fermix.errors import UsageError
from fermix.secret import Secret
from fermix.secrets import SecretStores
from fermix.secrets.port import check_name


@click.group(
    cls=Group,
    epilog=examples("fermix secrets set openai", "fermix secrets list", "fermix secrets remove openai"),
)
def group() -> None:
    """Keep keys and passwords.

    Settings name a secret as @secret:NAME. It is looked up in the environment, in the system's
    keyring, then in private files of the home; a running fermix uses a change at once.
    """


@group.command(
    "set",
    epilog=examples(
        "fermix secrets set openai",
        "fermix secrets set openai < key.txt",
        "fermix secrets set openai --from-file key.txt",
    ),
)
@click.argument("name", shell_complete=secret_files)
@click.option(
    "--from-file",
    "file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    help="Take it from a file instead.",
)
@json_option
def set_secret(name: str, file: Path | None, as_json: bool) -> None:
    """Keep a secret under NAME; asks for it, or reads it from standard input."""
    check_name(name)
    home = own_home()
    stores = _stores()
    text = _given(name, file)
    prepare_home(home)
    store = stores.set(name, Secret(text))
    if as_json:
        print_json({"name": name, "store": store})
        return
    print(f"{name} is kept in {_place(store)}", flush=True)
    if os.environ.get(environment_variable(name)):
        say(f"{environment_variable(name)} in the environment comes before it")


@group.command("list", epilog=examples("fermix secrets list", "fermix secrets list --json"))
@json_option
def list_all(as_json: bool) -> None:
    """List the names of all secrets and where each is kept, never the secrets."""
    facts = _stores().facts()
    if as_json:
        print_json({"secrets": [{"name": fact.name, "store": fact.store} for fact in facts]})
        return
    if not facts:
        print("No secrets. Keep one with: fermix secrets set NAME")
    width = max((len(fact.name) for fact in facts), default=0)
    for fact in facts:
        print(f"{fact.name.ljust(width)}  {fact.store}")


@group.command(epilog=examples("fermix secrets remove openai"))
@click.argument("name", shell_complete=secret_files)
@json_option
def remove(name: str, as_json: bool) -> None:
    """Forget a secret, wherever fermix keeps it; what is in the environment stays."""
    check_name(name)
    _stores().remove(name)
    if as_json:
        print_json({"removed": name})
    else:
        print(f"{name} is no longer kept")


def _stores() -> SecretStores:
    home = own_home()
    return SecretStores(home, os.environ, settings=load_settings(home, os.environ).secrets)


def _given(name: str, file: Path | None) -> str:
    if file is not None:
        return secret_text(file.read_bytes(), f"'{file}'")
    if not can_ask():
        return read_secret_from_stdin()
    text = ask_hidden(f"Secret {name} (not shown)")
    if not text:
        raise UsageError("Nothing was typed; nothing is changed.", hint=f"fermix secrets set {name}")
    return text


def _place(store: str) -> str:
    return "the system's keyring" if store == "keyring" else f"'{own_home().secrets}'"
