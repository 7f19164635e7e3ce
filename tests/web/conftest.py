"""The HTTP service of `tests.web.service`, for every test here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.service import Service, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path, idle_s=1) as made:
        yield made
