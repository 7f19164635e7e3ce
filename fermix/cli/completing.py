"""What can follow on a command line, from files and a running daemon; never starts anything.

A completion that fails says nothing: the shell is waiting for the person's next key.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from fermix.cli.terminal import one_line
from fermix.errors import FermixError
from fermix.paths import Home

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_TIMEOUT_S = 0.5
_MOST = 100


def command_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of commands, below those that stand there already."""
    found: click.Command | None = context.find_root().command
    for word in context.params.get("words") or ():
        found = found.get_command(context, word) if isinstance(found, click.Group) else None
    return _items(found.list_commands(context) if isinstance(found, click.Group) else (), typed)


def session_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of sessions; none while no daemon runs."""
    from click.shell_completion import CompletionItem  # only while a name is completed

    from fermix.ipc.client import open_connection

    items: list[CompletionItem] = []
    with contextlib.suppress(FermixError, OSError):
        home = Home.find(os.environ)
        with open_connection(home.socket, timeout_s=_TIMEOUT_S) as connection:
            asked = {"limit": _MOST, "is_archived": bool(context.params.get("is_undone"))}
            found = connection.call("sessions.list", asked, _TIMEOUT_S).get("sessions") or []
        for each in found:
            name = str(each.get("session") or "")
            if name.startswith(typed) and name.isprintable():
                items.append(CompletionItem(name, help=one_line(str(each.get("title") or ""), 40)))
    return items


def model_files(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the model files in the home."""
    with contextlib.suppress(OSError):
        found = Home.find(os.environ).models.glob("*.gguf")
        return _items((path.stem for path in found), typed)
    return []


def secret_files(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the secrets kept in files; a keyring might ask its owner something."""
    from fermix.secrets.files import FileSecrets  # only while a name is completed

    with contextlib.suppress(FermixError):
        return _items(FileSecrets(Home.find(os.environ).secrets).names(), typed)
    return []


def setting_keys(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Keys of settings, SECTION.SETTING."""
    from fermix.daemon.sections import SCHEMA  # only while a key is completed

    return _items((".".join(located.path) for located in SCHEMA.keys({})), typed)


def _items(names: Iterable[str], typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # only while a name is completed

    return [CompletionItem(name) for name in sorted(names) if name.startswith(typed)]
