"""Installing, repairing and removing the files of a service."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from fermix.errors import ServiceError, ServiceForeign, ServiceMissing, UsageError
from fermix.setup.service.owner import person
from fermix.setup.service.places import Scope, place_of
from fermix.setup.service.service import Service, unit_facts

Make = Callable[..., Service]
both = pytest.mark.parametrize("scope", list(Scope))


def tree(folder: Path) -> dict[str, str]:
    """Everything below a folder with what is in it."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_text()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


@both
def test_install_and_uninstall_leave_nothing(make_service: Make, tmp_path: Path, scope: Scope) -> None:
    service = make_service(scope)

    service.install()
    assert service.place.unit.exists()
    service.uninstall()

    assert not (tmp_path / "root").exists()


def test_folders_that_were_there_stay(make_service: Make, tmp_path: Path) -> None:
    service = make_service()
    service.place.unit.parent.mkdir(parents=True)
    (tmp_path / "root/home/ann/.fermix").mkdir()
    before = tree(tmp_path)

    service.install()
    make_service(version="0.2.0").install()  # an update remembers what the first install made
    service.uninstall()

    assert tree(tmp_path) == before


@both
def test_the_service_starts_by_itself_from_then_on(make_service: Make, scope: Scope) -> None:
    service = make_service(scope)

    service.install()

    assert service.place.link.parent.name in ("default.target.wants", "multi-user.target.wants")
    assert service.place.link.readlink() == service.place.named
    assert service.look().is_current


def test_a_second_install_changes_nothing(make_service: Make, tmp_path: Path) -> None:
    make_service().install()
    before = tree(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}

    change = make_service().install()

    assert not (change.unit or change.link or change.environment_file or change.is_new)
    assert tree(tmp_path) == before
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"command": ("/bin/cat",)}, ["ExecStart=", "ExecReload="]),
        ({"version": "9.9.9"}, ["# Written by fermix"]),
        ({"longest_stop_s": 300.0}, ["TimeoutStopSec="]),
    ],
)
def test_what_this_fermix_would_write_otherwise_is_named_and_repaired(
    make_service: Make, changes: dict[str, object], names: list[str]
) -> None:
    make_service().install()
    service = make_service(**changes)

    found = service.look().differences
    change = service.install()

    for each, name in zip(found, names, strict=True):
        assert each.installed is not None and each.installed.startswith(name)
        assert each.expected is not None and each.expected.startswith(name)
        assert each.installed != each.expected
    assert change.unit and not change.is_new and change.differences == found
    assert service.look().is_current


def test_lines_somebody_edited_are_named_and_repaired(make_service: Make) -> None:
    service = make_service()
    service.install()
    unit = service.place.unit
    text = unit.read_text()
    edited = text.replace("NoNewPrivileges=yes\n", "").replace("Restart=on-failure", "Restart=always")
    unit.write_text(edited + "Alias=agent.service\n")

    told = [(each.installed, each.expected) for each in service.look().differences]
    lines = {each.installed: each.line for each in service.look().differences}
    service.install()

    assert ("Restart=always", "Restart=on-failure") in told
    assert (None, "NoNewPrivileges=yes") in told
    assert any(installed == "Alias=agent.service" for installed, _ in told)
    assert edited.splitlines()[lines["Restart=always"] - 1] == "Restart=always"
    assert unit.read_text() == text


def test_a_missing_link_is_seen_and_made(make_service: Make) -> None:
    service = make_service()
    service.install()
    service.place.link.unlink()

    assert not service.look().is_enabled
    assert not service.look().is_current
    assert service.install().link
    assert service.look().is_current


def test_drop_ins_are_the_owners(make_service: Make) -> None:
    service = make_service()
    service.install()
    drop_in = service.place.unit.with_name("fermix.service.d") / "override.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nNice=5\n")

    look = service.look()
    make_service(version="0.2.0").install()
    removal = service.uninstall()

    assert look.drop_ins == (drop_in,)
    assert look.is_current
    assert removal.kept == (drop_in,)
    assert drop_in.read_text() == "[Service]\nNice=5\n"


def test_the_environment_file_is_private_and_has_no_secret(make_service: Make) -> None:
    service = make_service()

    service.install()

    text = service.environment_file.read_text()
    assert stat.S_IMODE(service.environment_file.stat().st_mode) == 0o600
    assert 'PATH="/usr/local/bin:/usr/bin:/bin"\n' in text
    assert "k-123" not in text


def test_an_edited_environment_file_stays(make_service: Make) -> None:
    service = make_service()
    service.install()
    edited = service.environment_file.read_text() + "MINE=1\n"
    service.environment_file.write_text(edited)

    change = service.install()
    removal = service.uninstall()

    assert not change.environment_file
    assert removal.kept == (service.environment_file,)
    assert service.environment_file.read_text() == edited


def test_a_unit_of_somebody_else_is_left_alone(make_service: Make) -> None:
    service = make_service()
    service.place.unit.parent.mkdir(parents=True)
    service.place.unit.write_text("[Service]\nExecStart=/bin/true\n")

    for act in (service.install, service.uninstall, service.look):
        with pytest.raises(ServiceForeign, match="was not written by fermix"):
            act()

    assert service.place.unit.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_the_unit_of_another_home_is_left_alone(make_service: Make) -> None:
    make_service().install()
    before = make_service().place.unit.read_text()

    with pytest.raises(
        ServiceForeign, match=r"serves the home '/home/ann/.fermix', not '/home/bob/.fermix'"
    ):
        make_service(home=Path("/home/bob/.fermix")).install()

    assert make_service().place.unit.read_text() == before


def test_nothing_installed_is_told_with_the_command_that_installs(make_service: Make) -> None:
    for act in (make_service().look, make_service().uninstall):
        with pytest.raises(ServiceMissing) as caught:
            act()
        assert caught.value.hint == "fermix service install --user"


def test_a_killed_install_is_finished_by_the_next_and_removed_whole(
    make_service: Make, tmp_path: Path
) -> None:
    service = make_service()
    service.install()
    for path in (service.place.unit, service.place.link, service.environment_file):
        path.with_name(f".{path.name}.new").write_text("half of it")

    service.place.link.unlink()
    service.install()
    for path in (service.place.unit, service.environment_file):
        path.with_name(f".{path.name}.new").write_text("half of it")
    service.uninstall()

    assert not (tmp_path / "root").exists()


def test_a_link_in_the_place_of_the_unit_is_replaced_and_not_followed(
    make_service: Make, tmp_path: Path
) -> None:
    service = make_service()
    service.install()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(service.place.unit.read_text().replace("mixed", "process"))
    service.place.unit.unlink()
    service.place.unit.symlink_to(elsewhere)

    service.install()

    assert not service.place.unit.is_symlink()
    assert "KillMode=process" in elsewhere.read_text()


def test_a_program_that_is_gone_is_not_installed(make_service: Make, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="'/opt/no/fermix' is gone"):
        make_service(command=("/opt/no/fermix",)).install()

    assert not (tmp_path / "root").exists()


def test_the_kind_of_an_installed_unit_stays_until_told_otherwise(make_service: Make) -> None:
    make_service(is_plain=True).install()
    unit = make_service().place.unit

    assert make_service().look().is_current
    make_service().install()
    assert "\nPrivateUsers=" not in unit.read_text()
    make_service(is_plain=False).install()
    assert "\nPrivateUsers=yes\n" in unit.read_text()
    assert make_service().look().is_current


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_real_system_service_needs_root(verb: str, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        verb = f"_as_person_{verb}"
        os.seteuid(65534)
    try:
        owner = person(os.geteuid())
        facts = unit_facts(
            Scope.SYSTEM,
            tmp_path,
            owner,
            command=("/bin/sh",),
            variables={},
            version="0",
            longest_stop_s=1.0,
        )
        service = Service(place_of(Scope.SYSTEM, {}), owner, facts, environment={})
        with pytest.raises(UsageError, match="by root"):
            getattr(service, verb.removeprefix("_as_person_"))()
    finally:
        os.seteuid(os.getuid())
