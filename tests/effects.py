"""Real effects on a home of the test's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fermix.capabilities.context import ToolContext
from fermix.capabilities.effects import Effect, Effects, keep_out_of_home, keep_out_of_proc
from fermix.capabilities.turn import TurnFacts
from fermix.clock import SystemClock
from fermix.process import CommandHost, CommandSettings, GroupLedger, child_environment
from fermix.tasks import Cancel, ThreadPool
from fermix.trust import OPERATOR_ATTENDED, Standing
from tests.fakes import tool_context, turn_facts


@dataclass
class World:
    """A home, its workspace, and the one door to them."""

    home: Path
    workspace: Path
    effects: Effects
    recorded: list[tuple[Effect, TurnFacts]] = field(default_factory=list)

    def turn(self, *, root: Path | None = None, cwd: Path | None = None, **facts: object) -> TurnFacts:
        """A turn that works in the workspace."""
        return turn_facts(cwd or self.workspace, file_root=root, **facts)

    def context(
        self,
        *,
        cwd: Path | None = None,
        standing: Standing = OPERATOR_ATTENDED,
        cancel: Cancel | None = None,
        progress: object = lambda text: None,
    ) -> ToolContext:
        """What a tool is handed."""
        facts = turn_facts(cwd or self.workspace, standing=standing, cancel=cancel)
        return tool_context(facts, self.effects, progress)


@contextmanager
def made_world(root: Path, environment: Mapping[str, str]) -> Iterator[World]:
    """A world below `root`; nothing of it runs on afterwards."""
    home = root / "home"
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    (home / "secrets").mkdir()
    (home / "config.toml").write_text("secret")
    settings = CommandSettings(grace_s=0.3)
    host = CommandHost(GroupLedger(home / "run.groups"), lambda: settings, SystemClock())
    pool = ThreadPool(2)
    recorded: list[tuple[Effect, TurnFacts]] = []
    effects = Effects(
        checks=(keep_out_of_home(home, workspace), keep_out_of_proc),
        record=lambda effect, turn: recorded.append((effect, turn)),
        commands=host,
        environment=child_environment(environment, settings.environment, {}),
        limits=settings.limits(),
        pool=pool,
    )
    yield World(home, workspace, effects, recorded)
    host.stop(5.0)
    pool.stop()
