"""A gateway with a real database, a scripted model and fake channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gateway.office import Office


@pytest.fixture
def open_office(tmp_path: Path) -> Iterator[Callable[..., Office]]:
    """Opens an office on the test's home; opening another one first closes the last, as a crash would."""
    offices: list[Office] = []

    def open_one(*script: object, **settings: object) -> Office:
        for office in offices:
            office.crash()
        offices.append(Office(tmp_path / "memory.db", *script, **settings))
        return offices[-1]

    yield open_one
    for office in offices:
        office.crash()
