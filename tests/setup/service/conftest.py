"""Services below a folder of the test's own, and a service manager that only writes down its orders."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fermix.setup.service.owner import Owner, person
from fermix.setup.service.places import Scope, place_of
from fermix.setup.service.service import Service, unit_facts

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def make_service(tmp_path: Path) -> Callable[..., Service]:
    """Makes the service of a home below `tmp_path/root`; any fact can be another."""

    def make(scope: Scope = Scope.USER, **changes: Any) -> Service:
        facts = {
            "home": Path("/home/ann/.fermix"),
            "command": ("/bin/sh",),
            "variables": {},
            "version": "0.1.0",
            "longest_stop_s": 40.0,
            **changes,
        }
        environment = {"HOME": "/home/ann", "PATH": PATH, "OPENAI_API_KEY": "k-123"}
        is_plain = facts.pop("is_plain", None)
        home = facts.pop("home")
        owner: Owner = person(os.geteuid())
        place = place_of(scope, environment, tmp_path / "root")
        return Service(
            place,
            owner,
            unit_facts(scope, home, owner, **facts),
            environment=environment,
            is_plain=is_plain,
        )

    return make


@dataclass
class FakeManager:
    """`systemctl` and `loginctl` on a PATH of their own."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}:{PATH}"}

    def says(self, script: str) -> None:
        """What both do after they have written down their words."""
        for name in ("systemctl", "loginctl"):
            program = self.folder / name
            program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.folder}/calls"\n{script}\n')
            program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """Every command line so far."""
        try:
            return (self.folder / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []


@pytest.fixture
def fake_manager(tmp_path: Path) -> FakeManager:
    """A service manager that says yes to everything."""
    folder = tmp_path / "programs"
    folder.mkdir()
    manager = FakeManager(folder)
    manager.says("exit 0")
    return manager
