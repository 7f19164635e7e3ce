"""Parts whose settings did not change are the very same ones after a reload."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gevent import socket

from fermix import events
from fermix.config.home import prepare_home
from fermix.daemon.app import Runtime
from fermix.daemon.launch import Placement
from fermix.daemon.mode import Mode
from fermix.daemon.parts import WorkerParts
from fermix.daemon.reload import LiveSettings
from fermix.daemon.sections import load_settings
from fermix.paths import Home
from fermix.secret import Secret
from fermix.secrets import SecretStores
from fermix.telemetry.lines import set_redaction
from tests.secrets.conftest import FAKE

PROVIDERS = """
[provider]
name = "mine"
[providers.mine]
base_url = "http://127.0.0.1:9/v1"
model = "one"
[providers.other]
base_url = "http://127.0.0.1:9/v1"
model = "one"
"""


class Daemon:
    """A runtime in this process, on a home of its own."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="fx-"))  # short: a socket's path has 107 bytes
        self.home = Home(self.root / "home")
        prepare_home(self.home)
        self.write(PROVIDERS)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.home.socket))
        listener.listen(8)
        self.listener = listener
        self.reached_arbiter = 0
        self.environment = environment = {"HOME": str(self.root), "PATH": os.environ["PATH"]}
        self.live = LiveSettings(load_settings(self.home, environment))
        placement = Placement(
            self.live, self.home, listener, None, Mode.FULL, environment, on_reload=self._reloaded
        )
        self.runtime = Runtime(placement)
        self.runtime.start()

    @property
    def parts(self) -> WorkerParts:
        return self.runtime._parts

    def write(self, text: str) -> None:
        self.home.config.write_text(text)
        self.home.config.chmod(0o600)

    def present(self) -> dict[str, object]:
        """Every part a reload could replace."""
        return {
            "db": self.parts.db,
            "commands": self.parts.commands,
            "gateway": self.parts.gateway,
            "queue": self.parts.gateway and self.parts.gateway.queue,
            "server": self.parts.server,
            "desk": self.parts.desk,
            "histories": self.parts.histories,
            "provider": self.parts.provider,
            "agent": self.parts.agents.present.agent,
        }

    def replaced(self, text: str) -> list[str]:
        """The parts that are others after a reload of this file."""
        before = self.present()
        self.write(text)
        self.runtime.reload()
        after = self.present()
        return [name for name, part in before.items() if after[name] is not part]

    def close(self) -> None:
        self.runtime.drain(1.0)
        self.runtime.stop()
        self.listener.close()
        shutil.rmtree(self.root)

    def _reloaded(self) -> None:
        self.reached_arbiter += 1


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    made = Daemon()
    yield made
    made.close()
    events.set_sink(None)
    set_redaction(None)


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        (f"{PROVIDERS}# a comment\n", []),
        (f"{PROVIDERS}[gateway]\nrunning_turns = 3\n", []),
        (f"{PROVIDERS}[commands]\ngrace_s = 1.0\n[control]\nconnections = 9\n", []),
        (f'{PROVIDERS}[logs]\nlevel = "warning"\n[runtime]\ndrain_s = 1.0\n', []),
        (f"{PROVIDERS}[local_model]\nthreads = 2\n", []),
        (PROVIDERS.replace('model = "one"\n[providers.other]', 'model = "one"\n[providers.third]'), []),
        (f"{PROVIDERS}[agent]\nsteps_per_turn = 3\n", ["agent"]),
        (PROVIDERS.replace('model = "one"', 'model = "two"', 1), ["provider", "agent"]),
        (PROVIDERS.replace('"mine"', '"other"', 1), ["provider", "agent"]),
        ('[provider]\nname = "local"\n[local_model]\nollama_url = ""\n', ["provider", "agent"]),
    ],
)
def test_only_what_changed_is_made_anew(daemon: Daemon, text: str, replaced: list[str]) -> None:
    daemon.write(PROVIDERS)
    daemon.runtime.reload()

    assert daemon.replaced(text) == replaced


def test_notice_about_the_provider_is_not_given_again_for_other_settings(daemon: Daemon) -> None:
    daemon.write(PROVIDERS)
    daemon.runtime.reload()
    daemon.parts.agents.present.agent.has_noticed = True

    daemon.replaced(f"{PROVIDERS}[agent]\nsteps_per_turn = 7\n")
    kept = daemon.parts.agents.present.agent.has_noticed
    daemon.replaced(PROVIDERS.replace('model = "one"', 'model = "three"', 1))

    assert (kept, daemon.parts.agents.present.agent.has_noticed) == (True, False)


def test_secrets_are_looked_up_anew_at_every_reload(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    path = daemon.home.secrets / "mine"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text("key-0123456789")
    path.chmod(0o600)
    keyed = PROVIDERS.replace('model = "one"', 'model = "one"\napi_key = "@secret:mine"', 1)
    daemon.replaced(keyed)
    before = daemon.parts.agents._stores

    assert daemon.replaced(keyed) == []
    assert daemon.parts.agents._stores is not before
    path.unlink()
    assert daemon.replaced(f"{keyed}[gateway]\nrunning_turns = 9\n") == []

    assert "mine goes on without its key: No secret named 'mine'" in caplog.text
    assert daemon.live.now.gateway.running_turns == 9


def test_limits_of_the_queue_change_in_the_same_queue(daemon: Daemon) -> None:
    daemon.write(f"{PROVIDERS}[gateway]\nrunning_turns = 5\nwaiting_messages = 6\n")

    daemon.runtime.reload()

    assert daemon.parts.gateway is not None
    assert daemon.parts.gateway.queue._slots._size == 5
    assert daemon.parts.gateway.queue._most_waiting == 6


def test_only_a_client_that_asks_has_the_arbiter_told(daemon: Daemon) -> None:
    before = daemon.reached_arbiter

    daemon.runtime.reload()
    daemon.runtime._reload_everywhere()

    assert daemon.reached_arbiter == before + 1


def test_a_keyring_that_is_locked_by_now_takes_no_key_from_a_provider_that_stays(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    program = daemon.root / "fermix"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o700)
    daemon.environment |= {
        "FERMIX_EXE": str(program),
        "FAKE_KEYRING": str(daemon.root / "keyring.json"),
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
    }
    SecretStores(daemon.home, daemon.environment).set("mine", Secret("key-0123456789"))
    keyed = PROVIDERS.replace('model = "one"', 'model = "one"\napi_key = "@secret:mine"', 1)
    daemon.replaced(keyed)
    daemon.environment["FAKE_KEYRING_MOOD"] = "locked"

    daemon.replaced(f"{keyed}[gateway]\nrunning_turns = 9\n")

    assert daemon.parts.agents.secret("@secret:mine").reveal() == "key-0123456789"
    assert "it is locked" in caplog.text
