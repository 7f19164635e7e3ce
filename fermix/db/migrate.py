"""Brings a database to the newest schema: numbered SQL files, each in one transaction."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from fermix.errors import SchemaNewer, StoreError

MIGRATIONS = Path(__file__).with_name("migrations")
"""Beside this module, in a checkout, an installed package and the frozen binary alike."""

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; its number is the version it leads to."""

    number: int
    name: str
    sql: str


def find(folder: Path = MIGRATIONS) -> list[Migration]:
    """The migrations of `folder` in order.

    Raises: StoreError when one is missing from the sequence 1, 2, 3 … or a name is not `NNNN_name.sql`.
    """
    migrations = []
    for file in sorted(folder.glob("*.sql")):
        match = _NAME.fullmatch(file.name)
        if match is None:
            raise StoreError(f"The migration '{file.name}' is not named like 0001_name.sql.")
        migrations.append(Migration(int(match[1]), file.stem, file.read_text("utf-8")))
    numbers = [migration.number for migration in migrations]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise StoreError(
            f"The migrations in '{folder}' are numbered {numbers}; expected 1, 2, 3 … in full."
        )
    return migrations


def refuse_newer(native: sqlite3.Connection, migrations: list[Migration], path: Path) -> None:
    """Raises: SchemaNewer when a newer fermix wrote the file; nothing is changed in it."""
    version = version_of(native)
    if version > len(migrations):
        raise SchemaNewer(
            f"The database '{path}' has schema {version}; this fermix knows up to {len(migrations)}.",
            hint="Run the newer fermix again, or put back a backup from before it: fermix version",
        )


def migrate(native: sqlite3.Connection, migrations: list[Migration]) -> list[Migration]:
    """Apply what is missing and return it; a crash leaves the version before or after each step.

    Contract: `native` is in autocommit; nobody else migrates this file meanwhile.
    """
    missing = migrations[version_of(native) :]
    for migration in missing:
        try:
            # `executescript` would commit before it begins, so the transaction is in the script.
            native.executescript(
                f"BEGIN IMMEDIATE;\n{migration.sql}\n;PRAGMA user_version = {migration.number};\nCOMMIT;"
            )
        finally:
            if native.in_transaction:
                native.execute("ROLLBACK")
    return missing


def version_of(native: sqlite3.Connection) -> int:
    """How many migrations the file has seen."""
    version: int = native.execute("PRAGMA user_version").fetchone()[0]
    return version
