"""`fermix setup`: three questions to a working chat, each also a flag."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from fermix.cli.asking import ask_whether, can_ask, read_secret_from_stdin, secret_text
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.setup_apply import apply_to_running
from fermix.cli.setup_probe import ProbeDoor
from fermix.cli.setup_screen import Screen
from fermix.cli.terminal import say
from fermix.cli.unit import manager_of
from fermix.config.home import prepare_home
from fermix.config.source import Source, read_source
from fermix.config.writer import ConfigWriter
from fermix.daemon.sections import SCHEMA, Settings, load_settings, user_home
from fermix.errors import OwnerError, SecretMissing, UsageError
from fermix.paths import Home
from fermix.process.program import own_command
from fermix.providers.catalog import local_models
from fermix.secret import Secret
from fermix.secrets import SecretStores
from fermix.setup.wizard.commit import Written, commit
from fermix.setup.wizard.flow import Wizard
from fermix.setup.wizard.port import Decision, Given, Present, Table
from fermix.setup.wizard.vendors import VENDORS

_OLLAMA_LOOK_S = 0.3
_WELCOME = """\
Three questions, then you can talk to fermix. Enter takes what is in brackets; Ctrl-C leaves and \
changes nothing."""


@click.command(
    epilog=examples(
        "fermix setup",
        "fermix setup --provider openai --key-file key.txt --name Ada --yes",
        "fermix setup --base-url http://box.lan:8000/v1 --model llama --yes --json",
    )
)
@click.option(
    "--provider",
    metavar="NAME",
    help=f"Who answers: {', '.join(vendor.name for vendor in VENDORS)}, or a name of yours.",
)
@click.option("--base-url", metavar="URL", help="Address of another server, as in https://HOST/v1.")
@click.option("--model", metavar="NAME", help="Model to ask; left out, a good one of the provider.")
@click.option("--key-file", metavar="FILE", help="Take the key from a file; - reads standard input.")
@click.option("--key-env", metavar="VARIABLE", help="Take the key from an environment variable.")
@click.option("--name", "owner_name", metavar="NAME", help="What fermix calls you.")
@click.option(
    "--service/--no-service",
    "wants_service",
    default=None,
    help="Run fermix as a service from now on, or do not ask about it.",
)
@click.option("--skip-probe", is_flag=True, help="Write it down without trying it.")
@click.option("--yes", "is_silent", is_flag=True, help="Ask nothing: flags, and what is set already.")
@json_option
def command(
    provider: str | None,
    base_url: str | None,
    model: str | None,
    key_file: str | None,
    key_env: str | None,
    owner_name: str | None,
    wants_service: bool | None,
    skip_probe: bool,
    is_silent: bool,
    as_json: bool,
) -> None:
    """Connect a model and say who you are.

    Tries the provider before anything is written. Settings, comments and order in config.toml
    stay as they are; only what was answered is changed.
    """
    home = own_home()
    given = Given(
        provider=provider,
        base_url=base_url,
        model=model,
        key=_given_key(key_file, key_env),
        owner_name=owner_name,
        skips_probe=skip_probe,
    )
    asker = Screen() if can_ask() and not is_silent and not as_json else None
    source = read_source(home.config)
    settings = load_settings(home, os.environ)
    stores = SecretStores(home, os.environ, settings=settings.secrets)
    present = _present(home, settings, source)
    if asker is not None:
        asker.tell(_WELCOME)
    with ProbeDoor(home, is_silent=as_json) as probe:
        wizard = Wizard(
            present,
            given,
            asker=asker,
            probe=probe,
            present_key=lambda table: _key_behind(stores, table),
        )
        decision = wizard.decide()
    wants_service = _wants_service(home, asker, wants_service)  # the last question: after it all is done
    with _uninterrupted():
        prepare_home(home)
        writer = ConfigWriter(home.config, SCHEMA, user_home=user_home(os.environ))
        written = commit(decision, present, source, writer=writer, stores=stores)
    applied = apply_to_running(home, has_changed=bool(written.keys))
    service = _service(wants_service, is_asked=asker is None, as_json=as_json)
    _finish(home, decision, written, applied, service, as_json=as_json)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C pass while secret and settings are written: in between they do not go together.

    A keyring that asks its owner something is a process of its own and ends by it as usual.
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _given_key(file: str | None, variable: str | None) -> Secret | None:
    """Raises: UsageError for both at once, or a source without a key."""
    if file is not None and variable is not None:
        raise UsageError("--key-file and --key-env exclude each other.", hint="fermix setup --help")
    if variable is not None:
        text = os.environ.get(variable, "").strip()
        if not text:
            raise UsageError(f"The environment variable {variable[:80]!r} is not set.")
        return Secret(text)
    if file is None:
        return None
    if file == "-":
        return Secret(read_secret_from_stdin().strip())
    try:
        return Secret(secret_text(Path(file).read_bytes(), f"'{file}'").strip())
    except OSError as exc:
        raise UsageError(f"The file '{file}' cannot be read: {exc.strerror}.") from exc


def _present(home: Home, settings: Settings, source: Source) -> Present:
    chosen = source.document.get("provider")
    is_chosen = isinstance(chosen, dict) and "name" in chosen
    return Present(
        provider=settings.provider.name if is_chosen else None,
        model=settings.provider.model,
        tables={
            name: Table(
                base_url=table.base_url, model=table.model, api_key=table.api_key, vendor=table.vendor
            )
            for name, table in settings.providers.items()
        },
        owner_name=settings.agent.owner_name,
        known_as=_user_name(),
        ollama_url=_found_ollama(settings.local_model.ollama_url),
        has_built_in=bool(local_models(home, os.environ)),
    )


def _user_name() -> str:
    """The full name this machine has for its user; empty when it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0].strip()[:80]
    except KeyError:
        return ""


def _found_ollama(url: str) -> str | None:
    """Its address; None when nothing listens there."""
    parts = urlsplit(url)
    try:
        address = (parts.hostname or "", parts.port or 80)
        socket.create_connection(address, timeout=_OLLAMA_LOOK_S).close()
    except (OSError, ValueError):
        return None
    return url.rstrip("/").removesuffix("/v1")


def _key_behind(stores: SecretStores, table: Table) -> Secret | None:
    try:
        return stores.resolve(table.api_key) if table.api_key else None
    except SecretMissing:
        return None


def _wants_service(home: Home, asker: Screen | None, wants: bool | None) -> bool:
    if wants is None and asker is not None and manager_of(home) is None:
        question = "Run fermix in the background from now on, also after a restart of this machine?"
        return ask_whether(question, default=False)
    return bool(wants)


def _service(wants: bool, *, is_asked: bool, as_json: bool) -> bool | None:
    """Whether the service is installed now; None when it was not wanted.

    Raises: OwnerError when a flag asked for it and it failed; a person is only told.
    """
    if not wants:
        return None
    argv = [*own_command(os.environ), "service", "install"]
    if subprocess.run(argv, capture_output=as_json, check=False).returncode == 0:
        return True
    failed = OwnerError(
        "The service could not be installed; all else is done.", hint="fermix service install"
    )
    failed.code = "service_failed"
    if is_asked:
        raise failed
    say(f"{failed.message} Try it again with: {failed.hint}")
    return False


def _finish(
    home: Home,
    decision: Decision,
    written: Written,
    applied: dict[str, Any],
    service: bool | None,
    *,
    as_json: bool,
) -> None:
    """Say what is different now and what to type next."""
    tried = decision.tried
    model = decision.model or (tried.model if tried else None)
    following = "fermix chat"
    if as_json:
        print_json(
            {
                "provider": decision.provider,
                "base_url": decision.base_url,
                "model": model,
                "owner_name": decision.owner_name,
                "probe": None if tried is None else {"status": tried.status, "message": tried.message},
                "config": str(home.config),
                "changed": list(written.keys),
                "secret": None
                if written.secret is None
                else {"name": written.secret, "store": written.store},
                "daemon": applied,
                "service_installed": service,
                "next": following,
            }
        )
        return
    if written.keys:
        print(f"Written to {home.config}: {', '.join(written.keys)}")
    else:
        print(f"{home.config} says all of this already; nothing is changed.")
    if written.secret is not None:
        place = "the system's keyring" if written.store == "keyring" else f"'{home.secrets}'"
        print(f"The key is kept in {place} as {written.secret}.")
    if applied["hint"]:
        print(applied["hint"])
    if tried is not None and not tried.is_good:
        print("It did not answer yet: try again with fermix setup when that is mended.")
    print(f"Next: {following}")
