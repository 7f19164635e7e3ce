"""Effects as the daemon wires them: a home with a workspace, a command host, real threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effects import World, made_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with made_world(tmp_path, os.environ) as world:
        yield world
