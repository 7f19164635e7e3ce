"""`fermix config`: reads and changes config.toml, with or without a running daemon."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import click

from fermix.cli.completing import setting_keys
from fermix.cli.config_view import as_toml, read_settings, shown_settings
from fermix.cli.failure import Failure, show_failure
from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.terminal import one_line, say
from fermix.cli.transcript import moment
from fermix.config import values
from fermix.config.declare import Setting
from fermix.config.edits import Edit
from fermix.config.home import prepare_home
from fermix.config.source import read_source
from fermix.config.writer import Backup, ConfigWriter
from fermix.daemon.sections import SCHEMA, find_problems, user_home
from fermix.errors import FermixError, SettingUnknown
from fermix.ipc.client import open_connection
from fermix.paths import Home


@click.group(
    cls=Group,
    epilog=examples("fermix config show --defaults", "fermix config set gateway.running_turns 16"),
)
def group() -> None:
    """Read and change settings.

    They stand in config.toml in the home; a KEY is SECTION.SETTING, as in gateway.running_turns.
    A running fermix takes changes up with `fermix reload`, those that need it with `fermix restart`.
    """


@group.command(
    "get", epilog=examples("fermix config get http.port", "fermix config get provider.name --json")
)
@click.argument("key", shell_complete=setting_keys)
@json_option
def get_value(key: str, as_json: bool) -> None:
    """Print the value that counts: from config.toml, else the default."""
    shown = read_settings(own_home(), os.environ).one(key)
    if as_json:
        print_json(shown.facts())
    else:
        value = values.plain(shown.value)
        print(value if isinstance(value, str) else "" if value is None else values.written(value))


@group.command(
    "set",
    # A negative number is a value, not an option.
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "fermix config set gateway.running_turns 16",
        "fermix config set http.names box.lan,box.example",
        "fermix config set providers.mine.api_key @secret:mine",
    ),
)
@click.argument("key", shell_complete=setting_keys)
@click.argument("value")
@json_option
def set_value(key: str, value: str, as_json: bool) -> None:
    """Write one setting into config.toml.

    Comments and order stay; the previous file is kept (fermix config restore). A list is written a,b.
    A secret is never written itself, only its name: @secret:NAME.
    """
    home = own_home()
    located = SCHEMA.locate(key)
    toml_value = values.parse(located.setting, value, key=key)
    decoded = values.decode(
        located.setting, toml_value, key=key, place=lambda: "", user_home=user_home(os.environ)
    )
    prepare_home(home)
    apply_edits([Edit(located.path, toml_value)])
    if as_json:
        print_json({"key": key, "value": values.plain(decoded)})
    else:
        print(f"{key} = {values.written(toml_value)}", flush=True)
        say_how_it_counts(home, [located.setting])


@group.command(
    epilog=examples("fermix config unset gateway.running_turns", "fermix config unset providers.mine")
)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=setting_keys)
@json_option
def unset(keys: tuple[str, ...], as_json: bool) -> None:
    """Take settings or whole tables out: their defaults count again."""
    source = read_source(own_home().config)
    for key in keys:
        if not _stands_in(source.document, key):
            raise SettingUnknown(f"{key!r} is not set in {source.path}.", hint="fermix config show")
    apply_edits([Edit(tuple(key.split(".")), None) for key in keys], based_on=source.digest)
    if as_json:
        print_json({"unset": list(keys)})
    else:
        print("\n".join(f"{key} is no longer set" for key in keys), flush=True)
        say_how_it_counts(own_home(), [each for key in keys for each in _named_by(key)])


@group.command(
    epilog=examples("fermix config show", "fermix config show --defaults", "fermix config show --json")
)
@click.option(
    "--defaults", "has_defaults", is_flag=True, help="Also what is not set, with what each is for."
)
@json_option
def show(has_defaults: bool, as_json: bool) -> None:
    """Print what config.toml sets; never a secret, only its name."""
    found = read_settings(own_home(), os.environ)
    shown = shown_settings(found, has_defaults=has_defaults)
    if as_json:
        print_json({"path": str(found.source.path), "settings": [each.facts() for each in shown]})
    elif shown:
        print(as_toml(shown, has_help=has_defaults))
    else:
        print("Nothing is set: every setting has its default (fermix config show --defaults).")


@group.command(epilog=examples("fermix config check", "fermix config check --json"))
@json_option
@click.pass_context
def check(context: click.Context, as_json: bool) -> None:
    """Say what is wrong with config.toml and its secrets."""
    home = own_home()
    failures = [Failure.of(each) for each in find_problems(home, os.environ)]
    if as_json:
        told = [{"code": each.code, "message": each.message, "hint": each.hint} for each in failures]
        answer: dict[str, Any] = {"path": str(home.config), "is_good": not told, "problems": told}
        print_json({**answer, "error": told[0]} if told else answer)
    else:
        for each in failures:
            show_failure(each, as_json=False)
        if not failures:
            print(f"{home.config} is good.")
    if failures:
        context.exit(1)


@group.command(
    epilog=examples("fermix config restore", "fermix config restore --list", "fermix config restore 2")
)
@click.argument("number", type=click.IntRange(min=0), required=False)
@click.option("--list", "is_listing", is_flag=True, help="Only show what could be put back.")
@json_option
def restore(number: int | None, is_listing: bool, as_json: bool) -> None:
    """Put back the config.toml before the last change, or the one with this NUMBER.

    It is put back only if it loads; the one that it replaces is kept like those before it.
    """
    home = own_home()
    writer = ConfigWriter(home.config, SCHEMA, user_home=user_home(os.environ))
    if is_listing:
        _show_backups(writer.backups(), as_json)
        return
    chosen = writer.restore(number)
    if as_json:
        print_json({"path": str(home.config), "restored": chosen.number})
        return
    print(f"{home.config} is again as it was until {moment(chosen.changed_ms)}.", flush=True)
    say("To see what changed: fermix config show; back again with: fermix config restore")
    say_how_it_counts(home, [located.setting for located in SCHEMA.keys({})])


@group.command(epilog=examples("fermix config path", '$EDITOR "$(fermix config path)"'))
@json_option
def path(as_json: bool) -> None:
    """Print where config.toml is, or would be."""
    config = own_home().config
    if as_json:
        print_json({"path": str(config), "exists": config.exists()})
    else:
        print(config)


def _show_backups(backups: list[Backup], as_json: bool) -> None:
    if as_json:
        told = [
            {
                "number": each.number,
                "path": str(each.path),
                "changed_ms": each.changed_ms,
                "size_bytes": len(each.raw),
                "problem": each.problem,
            }
            for each in backups
        ]
        print_json({"backups": told})
        return
    if not backups:
        print("Nothing was replaced yet.")
    for each in backups:
        state = "loads" if each.problem is None else one_line(each.problem, 100)
        print(f"{each.number}  until {moment(each.changed_ms):<10}  {len(each.raw):>6} bytes  {state}")


def apply_edits(edits: list[Edit], *, based_on: str | None = None) -> None:
    home = own_home()
    ConfigWriter(home.config, SCHEMA, user_home=user_home(os.environ)).apply(edits, based_on=based_on)


def say_how_it_counts(home: Home, changed: list[Setting]) -> None:
    """A daemon that runs goes on with the settings it has read; without one there is nothing to say."""
    verb = "restart" if any(each.needs_restart for each in changed) else "reload"
    with contextlib.suppress(FermixError), open_connection(home.socket, timeout_s=0.5):
        say(f"It counts after: fermix {verb}")


def _named_by(key: str) -> Sequence[Setting]:
    """The setting a key names, or all of the table it names; none for a table of tables."""
    section = SCHEMA.section_at(tuple(key.split(".")))
    if section is not None:
        return section.settings
    try:
        return [SCHEMA.locate(key).setting]
    except SettingUnknown:
        return []


def _stands_in(document: dict[str, object], key: str) -> bool:
    found: object = document
    for name in key.split("."):
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return True
