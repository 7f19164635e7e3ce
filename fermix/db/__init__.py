"""SQLite: one writer thread with group commits, a few reader threads, numbered migrations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fermix.db.connection import Connection
    from fermix.db.database import Database, Integrity, StoreHealth
    from fermix.db.fts import match_expression
    from fermix.db.row import Row

__all__ = ["Connection", "Database", "Integrity", "Row", "StoreHealth", "match_expression"]

_HOMES = {
    "Connection": "fermix.db.connection",
    "Database": "fermix.db.database",
    "Integrity": "fermix.db.database",
    "Row": "fermix.db.row",
    "StoreHealth": "fermix.db.database",
    "match_expression": "fermix.db.fts",
}


def __getattr__(name: str) -> object:
    # The settings schema imports fermix.db.settings in client processes that must load neither
    # gevent nor peewee, so the names above are fetched at first use.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
