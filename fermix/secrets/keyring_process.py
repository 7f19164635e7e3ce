"""The process that talks to the system's keyring, one request each: a keyring may hang, ask or crash.

`fermix _keyring check|get|set|remove SERVICE NAME`; the secret comes on stdin and goes to stdout, never
into an argument. Nothing here is patched by gevent: the libraries below block and use threads.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

LIMITS_S = {"check": 5, "get": 10, "set": 120, "remove": 10}
"""Longest each request takes. Only `set` may make the keyring ask its owner something first."""


class Outcome(IntEnum):
    """The exit status."""

    DONE = 0
    FAILED = 1
    ABSENT = 3
    LOCKED = 4
    NO_KEYRING = 5


def main(words: Sequence[str]) -> int:
    """Do what the words say; what went wrong stands on stderr, without the secret."""
    action, service, name = words
    # Whoever asked waits no longer than this either; it may be gone, and then nobody else ends us.
    signal.alarm(LIMITS_S[action] + 5)
    try:
        return _answer(action, service, name)
    except (ImportError, RuntimeError, OSError) as error:  # no library, no service behind the bus, no bus
        return _told(Outcome.NO_KEYRING, error)
    except Exception as error:  # the process boundary: any library below may fail in its own way
        is_locked = "Locked" in type(error).__name__ or "dismissed" in str(error).lower()
        return _told(Outcome.LOCKED if is_locked else Outcome.FAILED, error)


def _answer(action: str, service: str, name: str) -> Outcome:
    keyring = _open()
    match action:
        case "check":
            return Outcome.LOCKED if _is_locked() else Outcome.DONE
        case "get":
            if _is_locked():
                return Outcome.LOCKED
            found = keyring.get_password(service, name)
            if found is None:
                return Outcome.ABSENT
            sys.stdout.buffer.write(found.encode())
            sys.stdout.flush()
        case "set":
            keyring.set_password(service, name, sys.stdin.buffer.read().decode())
        case "remove":
            if _is_locked():
                return Outcome.LOCKED
            from keyring.errors import PasswordDeleteError

            try:
                keyring.delete_password(service, name)
            except PasswordDeleteError:
                return Outcome.ABSENT
        case _:
            return Outcome.FAILED
    return Outcome.DONE


def _open() -> KeyringBackend:
    """The one backend of this system, named outright: a frozen program has no entry points to search.

    Raises: RuntimeError, ImportError when there is none.
    """
    # Else the import alone looks for every backend there is, and loads what a file of the user's names.
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    if sys.platform == "darwin":
        from keyring.backends.macOS import Keyring as MacKeyring

        return MacKeyring()
    from keyring.backends.SecretService import Keyring

    if Keyring.priority <= 0:
        raise RuntimeError("no Secret Service")
    return Keyring()


def _is_locked() -> bool:
    """Whether reading would make the keyring ask a person; only looks, never opens a dialog.

    Raises: RuntimeError when it was never set up: making its first collection would ask, too.
    """
    if sys.platform == "darwin":
        return False
    import secretstorage

    connection = secretstorage.dbus_init()
    try:
        return bool(secretstorage.Collection(connection).is_locked())
    except secretstorage.ItemNotFoundException as error:
        raise RuntimeError("the keyring has no default collection") from error
    finally:
        connection.close()


def _told(outcome: Outcome, error: Exception) -> Outcome:
    sys.stderr.write(f"{type(error).__name__}: {error}"[:300])
    return outcome
