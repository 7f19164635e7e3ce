"""The base of every table's rows."""

from __future__ import annotations

from typing import Any

import peewee

from fermix.db.connection import current, is_inside_work


class _OfTheWork(peewee.SqliteDatabase):
    """Stands for whichever connection the running work was given, never for one of its own."""

    def __init__(self) -> None:
        super().__init__("the connection of the work", thread_safe=False, autoconnect=False)

    @property
    def _state(self) -> Any:  # Any: peewee's record has no public type
        return current().bookkeeping()

    @_state.setter
    def _state(self, state: object) -> None:
        """peewee's constructor makes one; there is nothing to keep."""

    def is_closed(self) -> bool:
        return not is_inside_work()

    def _log_query(self, sql: str, parameters: object) -> None:
        """Nothing, for the same reason as a Connection."""


class Row(peewee.Model):
    """A row that is read and written only inside `db.read(work)` and `db.write(work)`.

    Subclasses stand in `<package>/tables.py`, name their table in `Meta.table_name`, and agree
    with what the migrations make of it.
    """

    class Meta:
        database = _OfTheWork()
