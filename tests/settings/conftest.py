"""One running daemon for all tests of settings: each changes some by a reload and looks what that does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fermix.ipc.client import Connection, Event
from tests.bot import Bot, Model, Reply, fresh_id, wait_for

ECHO = {"rules": [{"when": "", "then": [{"say": "You said: {text}"}]}]}
HANGING = {"rules": [{"when": "", "then": [{"hang": True}]}]}


class Lab:
    """A daemon, its scripted model, and a config.toml that is written anew for each change."""

    def __init__(self) -> None:
        self.model = Model(ECHO)
        self.bot = Bot(self.model, full=True)
        self._open: list[Connection] = []
        self._sessions = 0
        self.write()
        self.bot.start()

    def write(self, **sections: dict[str, object]) -> None:
        """Write config.toml: what every test needs, and these; `providers` is the one in use."""
        told = {
            "provider": {"name": "scripted"},
            "providers.scripted": {"base_url": self.model.base_url, "model": "scripted"},
            "http": {"port": 0},
        }
        for name, values in sections.items():
            table = "providers.scripted" if name == "providers" else name
            told[table] = {**told.get(table, {}), **values}
        lines = [
            line
            for name, values in told.items()
            for line in (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()))
        ]
        path = self.bot.home / "config.toml"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)

    def put(self, **sections: dict[str, object]) -> list[str]:
        """Change to these settings by a reload; the keys that were applied."""
        self.write(**sections)
        with self.bot.connect() as connection:
            return list(connection.call("reload", {}, 20.0)["applied"])

    def session(self) -> str:
        """The name of a session nobody has used."""
        self._sessions += 1
        return f"s{self._sessions}"

    def say(self, text: str = "hi", *, session: str | None = None) -> Reply:
        return self.bot.say(text, session=session or self.session())

    def shell(self, script: str, **arguments: object) -> str:
        """What the agent's shell command printed."""
        call = {"name": "shell", "arguments": {"script": script, **arguments}}
        self.model.script({"steps": [{"tool_calls": [call]}, {"say": "done"}]})
        reply = self.say()
        return str(next(event.data["text"] for event in reply.events if event.name == "tool_result"))

    def asked(self) -> dict[str, Any]:
        """The body of the last request to the model."""
        return dict(self.model.requests()[-1]["body"])

    def begin(self, text: str = "hi", *, session: str | None = None) -> str:
        """Send a message and do not wait for its answer; the session. Raises: the daemon's refusal."""
        name = session or self.session()
        connection = self.bot.connect()
        self._open.append(connection)
        stream = connection.stream(
            "message", {"text": text, "session": name, "client_id": fresh_id()}, 30.0
        )
        accepted = stream.read(10.0)
        assert isinstance(accepted, Event) and accepted.name == "accepted"
        return name

    def turns(self) -> tuple[int, int]:
        """How many run and wait."""
        found = self.bot.status()["turns"]
        return found["running"], found["waiting"]

    def settle(self) -> None:
        """Stop whatever still runs, and go back to the settings all tests begin with."""
        self.bot.say("/stop all")
        for connection in self._open:
            connection.close()
        self._open.clear()
        wait_for("the turns to end", self._stopped)
        self.model.script(ECHO)
        self.put()

    def _stopped(self) -> bool:
        if self.turns() == (0, 0):
            return True
        self.bot.say("/stop all")
        return False

    def close(self) -> None:
        self.bot.close()
        self.model.close()


@pytest.fixture(scope="session")
def _lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.close()


@pytest.fixture
def lab(_lab: Lab) -> Iterator[Lab]:
    """The running daemon, with its first settings again after each test."""
    yield _lab
    _lab.settle()
