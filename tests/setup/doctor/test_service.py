"""The service's unit against what this fermix would write, below a throw-away root."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fermix.paths import Home
from fermix.setup.doctor.finding import State
from fermix.setup.doctor.scene import Scene
from fermix.setup.doctor.service import look, unit_texts
from fermix.setup.service.owner import person
from fermix.setup.service.places import Scope, place_of
from fermix.setup.service.service import Service, unit_facts
from fermix.setup.service.systemd import UnitFacts
from tests.setup.doctor.conftest import one, repair

SceneMaker = Callable[..., Scene]


@pytest.fixture
def facts(home: Home, tmp_path: Path) -> UnitFacts:
    """What a user's unit of this home is made from; its program is there."""
    program = tmp_path / "fermix"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return unit_facts(
        Scope.USER,
        home.root,
        person(os.geteuid()),
        command=(str(program),),
        variables={},
        version="0.1.0",
        longest_stop_s=40.0,
    )


@pytest.fixture
def service(facts: UnitFacts, tmp_path: Path) -> Service:
    """The service in a root of its own."""
    environment = {"HOME": str(tmp_path / "person"), "PATH": "/usr/bin:/bin"}
    place = place_of(Scope.USER, environment, tmp_path / "root")
    return Service(place, person(os.geteuid()), facts, environment=environment, is_plain=True)


def test_no_service_is_no_failure(scene: SceneMaker, service: Service) -> None:
    for answer in (None, service):
        finding = one(look(scene(service=lambda answer=answer: answer)), State.SKIPPED)
        assert finding.hint == "fermix service install"


def test_unit_as_it_should_be_is_good(scene: SceneMaker, service: Service) -> None:
    service.install()

    assert [each.state for each in look(scene(service=lambda: service))] == [State.OK]


def test_old_unit_is_named_and_written_anew(scene: SceneMaker, service: Service) -> None:
    service.install()
    unit = service.place.unit
    whole = unit.read_text()
    unit.write_text(
        whole.replace("ExecStart=", "ExecStart=/opt/old/fermix run\n#").replace("KillMode=mixed\n", "")
    )

    finding = one(look(scene(service=lambda: service)), State.FAIL)

    assert str(unit) in finding.saw and "/opt/old/fermix" in finding.saw
    assert finding.hint == "fermix service install --user"
    repair(finding)
    assert unit.read_text() == whole
    assert [each.state for each in look(scene(service=lambda: service))] == [State.OK]


def test_service_that_nothing_starts_is_named_and_enabled(scene: SceneMaker, service: Service) -> None:
    service.install()
    service.place.link.unlink()

    finding = one(look(scene(service=lambda: service)), State.WARN)

    repair(finding)
    assert service.place.link.is_symlink()


def test_unit_of_another_program_is_left(scene: SceneMaker, service: Service) -> None:
    service.place.unit.parent.mkdir(parents=True)
    service.place.unit.write_text("[Service]\nExecStart=/usr/bin/other\n")

    finding = one(look(scene(service=lambda: service)), State.WARN)

    assert finding.fix is None
    assert (finding.hint or "").startswith("mv ")


@pytest.fixture
def manager(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """An environment in which `systemctl` and `loginctl` say this."""

    def put(properties: str, lingers: str = "yes") -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name, said in (("systemctl", properties), ("loginctl", lingers)):
            (folder / name).write_text(
                f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncat <<END\n{said}\nEND\n'
            )
            (folder / name).chmod(0o755)
        return {"HOME": str(tmp_path / "person"), "PATH": f"{folder}:/usr/bin:/bin"}

    return put


def real(facts: UnitFacts, environment: dict[str, str]) -> Service:
    """The service in the real root, of a person whose folder is a throw-away one."""
    place = place_of(Scope.USER, environment)
    return Service(place, person(os.geteuid()), facts, environment=environment, is_plain=True)


@pytest.mark.parametrize(
    ("properties", "lingers", "said", "hint"),
    [
        (
            "ActiveState=failed\nResult=start-limit-hit\nExecMainStatus=1",
            "yes",
            "start-limit-hit",
            "fermix start",
        ),
        ("ActiveState=active\nNeedDaemonReload=yes", "yes", "older", "systemctl --user daemon-reload"),
        ("ActiveState=active", "no", "lingering is off", "enable-linger"),
    ],
)
def test_what_the_service_manager_says_is_told(
    scene: SceneMaker,
    facts: UnitFacts,
    manager: Callable[..., dict[str, str]],
    properties: str,
    lingers: str,
    said: str,
    hint: str,
) -> None:
    environment = manager(properties, lingers)
    installed = real(facts, environment)
    installed.install()

    (finding,) = look(scene(service=lambda: installed, environment=environment))

    assert said in finding.saw
    assert hint in (finding.hint or "")


def test_repair_has_the_service_manager_read_the_unit(
    scene: SceneMaker, facts: UnitFacts, manager: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    environment = manager("ActiveState=inactive")
    installed = real(facts, environment)
    installed.install()
    installed.place.unit.write_text(installed.place.unit.read_text() + "# old\n")

    repair(one(look(scene(service=lambda: installed, environment=environment)), State.FAIL))

    assert "daemon-reload" in (tmp_path / "asked").read_text()


def test_units_are_read_for_a_report(scene: SceneMaker, facts: UnitFacts, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "person"), "PATH": "/usr/bin:/bin"}
    installed = real(facts, environment)
    installed.install()

    texts = unit_texts(scene(environment=environment))

    assert texts[str(installed.place.unit)] == installed.place.unit.read_text()
