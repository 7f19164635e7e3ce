"""The check of the owner's files of instructions."""

from __future__ import annotations

from collections.abc import Callable

from fermix.agent.bootstrap import LIMIT_BYTES, seed
from fermix.setup.doctor.finding import State
from fermix.setup.doctor.instructions import look
from fermix.setup.doctor.scene import Scene


def test_seeded_files_are_good(scene: Callable[..., Scene]) -> None:
    made = scene()
    before = look(made)
    seed(made.home.bootstrap)

    assert [each.state for each in before] == [State.SKIPPED]
    assert [each.state for each in look(made)] == [State.OK]


def test_each_file_with_trouble_is_named(scene: Callable[..., Scene]) -> None:
    made = scene()
    seed(made.home.bootstrap)
    (made.home.bootstrap / "IDENTITY.md").write_bytes(b"\xff")
    (made.home.bootstrap / "RULES.md").write_text("x" * (LIMIT_BYTES + 1))

    findings = look(made)

    assert [each.state for each in findings] == [State.WARN, State.WARN]
    assert "IDENTITY.md' cannot be read" in findings[0].saw
    assert "RULES.md' is longer than" in findings[1].saw
