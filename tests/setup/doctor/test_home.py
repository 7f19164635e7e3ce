"""Owners and modes of the home."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from fermix.paths import Home
from fermix.setup.doctor.finding import State
from fermix.setup.doctor.home import look
from fermix.setup.doctor.scene import Scene
from tests.setup.doctor.conftest import make_database, one, repair

SceneMaker = Callable[..., Scene]


def test_private_home_is_good(scene: SceneMaker) -> None:
    assert [each.state for each in look(scene())] == [State.OK]


def test_home_that_is_not_there_yet_is_no_failure(scene: SceneMaker, tmp_path: Path) -> None:
    finding = one(look(scene(home=Home(tmp_path / "none"))), State.SKIPPED)

    assert finding.hint == "fermix setup"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("name", "mode", "wanted"),
    [
        (".", 0o755, 0o700),
        ("secrets", 0o750, 0o700),
        ("secrets/key", 0o644, 0o600),
        ("secrets/key", 0o040, 0o600),
        ("memory.db", 0o664, 0o600),
        ("api-token", 0o604, 0o600),
        ("tokens.toml", 0o640, 0o600),
        ("config.toml", 0o666, 0o600),
    ],
)
def test_too_open_mode_is_named_and_closed(
    scene: SceneMaker, home: Home, name: str, mode: int, wanted: int
) -> None:
    path = home.root / name
    if not path.exists():
        path.write_text("x")
        path.chmod(0o600)
    path.chmod(mode)

    finding = one(look(scene()), State.FAIL)

    assert f"{mode:04o}" in finding.saw and str(path) in finding.saw
    assert finding.hint == f"chmod {wanted:o} {path}"
    repair(finding)
    assert stat.S_IMODE(path.stat().st_mode) == wanted
    assert [each.state for each in look(scene())] == [State.OK]


def test_config_others_may_read_is_good(scene: SceneMaker, home: Home) -> None:
    home.config.write_text("")
    home.config.chmod(0o664)

    assert [each.state for each in look(scene())] == [State.OK]


@pytest.mark.parametrize("name", ["secrets", "workspace", "secrets/key", "memory.db", "config.toml"])
def test_what_belongs_to_another_is_named_and_never_touched(
    scene: SceneMaker, home: Home, name: str
) -> None:
    path = home.root / name
    if not path.exists():
        path.write_text("x")
    os.chown(path, 4711, -1)
    path.chmod(0o777)

    finding = one(look(scene()), State.FAIL)

    assert "user 4711" in finding.saw
    assert finding.hint == f"sudo chown -R {os.geteuid()} {path}"
    assert finding.fix is None


def test_missing_folder_of_a_used_home_is_made(scene: SceneMaker, home: Home) -> None:
    make_database(home)
    home.blobs.rmdir()

    finding = one(look(scene()), State.WARN)

    repair(finding)
    assert stat.S_IMODE(home.blobs.stat().st_mode) == 0o700


def test_file_in_a_folders_place_is_named_and_left(scene: SceneMaker, home: Home) -> None:
    home.models.rmdir()
    home.models.write_text("mine")

    finding = one(look(scene()), State.FAIL)

    assert finding.hint == f"mv {home.models} {home.models}.aside"
    assert finding.fix is None


def test_mode_is_not_changed_for_a_file_that_changed_hands(scene: SceneMaker, home: Home) -> None:
    target = home.secrets / "key"
    target.write_text("x")
    target.chmod(0o644)
    finding = one(look(scene()), State.FAIL)
    target.unlink()

    assert finding.fix is not None
    with pytest.raises(FileNotFoundError):
        finding.fix()


def test_root_is_sent_to_the_owner_of_the_home(scene: SceneMaker, home: Home) -> None:
    os.chown(home.root, 4711, -1)

    finding = one(look(scene()), State.FAIL)

    assert finding.hint == f"sudo -u '#4711' FERMIX_HOME={home.root} fermix doctor"
    assert finding.fix is None
