"""What a local client may ask the daemon: all methods of the control socket in one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fermix.ipc.server import Method


class Methods(Protocol):
    """One group of methods; each file of `daemon.methods` has one."""

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        ...


def table_of(groups: Iterable[Methods]) -> dict[str, Method]:
    """All methods by name. Raises: ValueError when two groups name the same one."""
    table: dict[str, Method] = {}
    for group in groups:
        added = group.methods()
        if doubled := table.keys() & added.keys():
            raise ValueError(f"defined twice: {', '.join(sorted(doubled))}")
        table |= added
    return table
