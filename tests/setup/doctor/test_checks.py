"""The run over all checks, and what repairs do to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fermix.errors import OwnerError
from fermix.paths import Home
from fermix.setup.doctor.checks import CHECKS, Check, examine
from fermix.setup.doctor.database import look as look_at_database
from fermix.setup.doctor.finding import Finding, State, Topic
from fermix.setup.doctor.scene import Scene

SceneMaker = Callable[..., Scene]
TOPIC = Topic("thing")


class Thing:
    """Something broken in `layers` ways that hide each other."""

    def __init__(self, layers: int, error: Exception | None = None) -> None:
        self.layers = layers
        self.error = error
        self.repaired = 0

    def look(self, scene: Scene) -> list[Finding]:
        if not self.layers:
            return [TOPIC.ok("whole")]
        return [TOPIC.fail(f"{self.layers} broken", "mend", fix=self._fix)]

    def _fix(self) -> str:
        if self.error is not None:
            raise self.error
        self.layers -= 1
        self.repaired += 1
        return "mended one"


def test_checks_have_names_of_their_own_and_say_them(scene: SceneMaker) -> None:
    outcomes = list(examine(scene(), repairs=False))

    assert [each.check for each in outcomes] == [each.name for each in CHECKS]
    assert len({each.name for each in CHECKS}) == len(CHECKS)
    assert all(finding.check == each.check for each in outcomes for finding in each.findings)
    assert all(each.findings for each in outcomes)


def test_good_home_has_no_failure(scene: SceneMaker) -> None:
    findings = [finding for each in examine(scene(), repairs=False) for finding in each.findings]

    assert [each for each in findings if each.state is State.FAIL] == []


def test_nothing_is_repaired_unasked(scene: SceneMaker) -> None:
    thing = Thing(1)

    (outcome,) = examine(scene(), repairs=False, checks=[Check("thing", thing.look)])

    assert (outcome.done, thing.repaired) == ((), 0)


def test_repairs_go_on_until_nothing_is_uncovered(scene: SceneMaker) -> None:
    (outcome,) = examine(scene(), repairs=True, checks=[Check("thing", Thing(2).look)])

    assert outcome.done == ("mended one", "mended one")
    assert [each.state for each in outcome.findings] == [State.OK]


def test_repairs_that_never_help_come_to_an_end(scene: SceneMaker) -> None:
    (outcome,) = examine(scene(), repairs=True, checks=[Check("thing", Thing(99).look)])

    assert [each.state for each in outcome.findings] == [State.FAIL]


def test_repair_that_is_refused_is_told_and_not_tried_again(scene: SceneMaker) -> None:
    for error, said in (
        (OwnerError("Not now."), "Not now."),
        (PermissionError(13, "Permission denied", "/x"), "The system refused '/x': Permission denied."),
    ):
        (outcome,) = examine(scene(), repairs=True, checks=[Check("thing", Thing(1, error).look)])

        assert outcome.refused == (said,)
        assert [each.state for each in outcome.findings] == [State.FAIL]


def test_check_that_fails_itself_does_not_hide_the_others(scene: SceneMaker) -> None:
    def fails(scene: Scene) -> list[Finding]:
        raise OSError(5, "Input/output error")

    outcomes = list(
        examine(scene(), repairs=False, checks=[Check("bad", fails), Check("thing", Thing(0).look)])
    )

    assert [each.findings[0].state for each in outcomes] == [State.FAIL, State.OK]
    assert "Input/output error" in outcomes[0].findings[0].saw


def test_what_may_not_be_looked_at_is_no_second_failure(scene: SceneMaker) -> None:
    def refused(scene: Scene) -> list[Finding]:
        raise PermissionError(13, "Permission denied", "/root/home/memory.db")

    (outcome,) = examine(scene(), repairs=False, checks=[Check("closed", refused)])

    assert [each.state for each in outcome.findings] == [State.SKIPPED]
    assert "/root/home/memory.db" in outcome.findings[0].saw


def test_home_of_another_is_only_looked_at(scene: SceneMaker, home: Home) -> None:
    (home.root / "memory.db").write_bytes(b"")
    os.chown(home.root / "memory.db", 4711, -1)
    os.chown(home.root, 4711, -1)
    thing = Thing(1)

    (outcome,) = examine(scene(), repairs=True, checks=[Check("thing", thing.look)])
    (database,) = examine(scene(), repairs=True, checks=[Check("database", look_at_database)])

    assert (outcome.done, thing.repaired) == ((), 0)
    assert outcome.refused == ("The home belongs to user 4711, who alone may repair it.",)
    assert [each.state for each in database.findings] == [State.SKIPPED]


def test_examining_changes_nothing_in_the_home(scene: SceneMaker, home: Home) -> None:
    def seen() -> list[tuple[str, int]]:
        return sorted((str(path), path.lstat().st_mode) for path in home.root.rglob("*"))

    before = seen()

    list(examine(scene(), repairs=False))

    assert seen() == before


def test_examining_a_home_that_is_not_there_makes_none(scene: SceneMaker, tmp_path: Path) -> None:
    nowhere = Home(tmp_path / "nowhere")

    list(examine(scene(home=nowhere), repairs=True))

    assert not nowhere.root.exists()
