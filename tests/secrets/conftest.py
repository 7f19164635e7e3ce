"""A keyring that is not the tester's own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fermix.paths import Home
from fermix.secrets import SecretStores
from fermix.secrets.settings import SecretSettings

FAKE = Path(__file__).parent / "fake_keyring.py"


@dataclass
class Desktop:
    """A home on a machine with a keyring, and what is in it."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        return Home(self.root / "home")

    def stores(self, store: str = "auto", **more: str) -> SecretStores:
        return SecretStores(self.home, {**self.environment, **more}, settings=SecretSettings(store=store))

    def mood(self, mood: str) -> None:
        self.environment["FAKE_KEYRING_MOOD"] = mood

    @property
    def kept(self) -> Mapping[str, str]:
        path = self.root / "keyring.json"
        return json.loads(path.read_text()) if path.exists() else {}

    @property
    def asked(self) -> list[str]:
        path = self.root / "keyring.log"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def desktop(tmp_path: Path) -> Desktop:
    program = tmp_path / "fermix"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o700)
    (tmp_path / "home/secrets").mkdir(mode=0o700, parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "FERMIX_EXE": str(program),
        "FAKE_KEYRING": str(tmp_path / "keyring.json"),
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
    }
    return Desktop(tmp_path, environment)
