"""Control servers of the test's own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ipc.service import Service


@pytest.fixture
def serve() -> Iterator[Callable[..., Service]]:
    """Starts a service on a socket with a short path: the kernel takes 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="fx-"))
    made: list[Service] = []

    def make(**settings: object) -> Service:
        made.append(Service(folder / "s", **settings))
        return made[-1]

    yield make
    for service in made:
        service.close()
    shutil.rmtree(folder)
