"""A command host with a ledger in a new folder, and a mark for the test's own processes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fermix.clock import SystemClock
from fermix.process import (
    Command,
    CommandHost,
    CommandResult,
    CommandSettings,
    GroupLedger,
    child_environment,
)
from fermix.tasks import Cancel
from tests.process.survivors import await_none

Shell = Callable[..., CommandResult]


@pytest.fixture
def mark() -> Iterator[str]:
    """A text for the test's processes; none that carries it may be left when the test ends."""
    text = f"mark-{secrets.token_hex(8)}"
    yield text
    await_none(text)


@pytest.fixture
def ledger(tmp_path: Path) -> GroupLedger:
    return GroupLedger(tmp_path / "run.groups")


@pytest.fixture
def host(ledger: GroupLedger) -> Iterator[CommandHost]:
    settings = CommandSettings(grace_s=0.3, reader_timeout_s=0.5)
    host = CommandHost(ledger, lambda: settings, SystemClock())
    yield host
    host.stop(5.0)
    assert len(ledger) == 0


@pytest.fixture
def shell(host: CommandHost, tmp_path: Path, mark: str) -> Shell:
    """Runs a script to its end; keywords go into the Command, `cancel` and `on_output` to the host."""

    def run(script: str, **fields: object) -> CommandResult:
        cancel = fields.pop("cancel", None) or Cancel()
        on_output = fields.pop("on_output", None)
        environment = child_environment(os.environ, CommandSettings().environment, {"TEST_MARK": mark})
        given = {"cwd": tmp_path, "environment": environment, "timeout_s": 10.0, **fields}
        return host.run(Command(argv=("/bin/sh", "-c", script), **given), cancel, on_output)

    return run
