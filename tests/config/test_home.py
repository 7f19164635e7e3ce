"""The home is made private, and refused when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from fermix.config.home import prepare_home
from fermix.errors import ConfigError, HomeUnsafe
from fermix.paths import Home


def test_a_new_home_is_private_with_all_its_folders(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")

    prepare_home(home)

    for folder in (home.root, home.secrets, home.workspace, home.logs, home.blobs, home.models):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_preparing_twice_changes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    prepare_home(home)
    (home.workspace / "note").write_text("kept")

    prepare_home(home)

    assert (home.workspace / "note").read_text() == "kept"


@pytest.mark.parametrize("name", ["", "secrets"])
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
def test_a_folder_others_can_reach_is_refused_with_its_repair(tmp_path: Path, name: str, mode: int) -> None:
    home = Home(tmp_path / "my home")
    prepare_home(home)
    (home.root / name).chmod(mode)

    with pytest.raises(HomeUnsafe) as refused:
        prepare_home(home)

    assert f"mode {mode:04o}" in refused.value.message
    assert refused.value.hint == f"chmod 700 '{home.root / name}'"


def test_a_workspace_elsewhere_keeps_its_own_mode(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir(mode=0o755)
    home = Home(tmp_path / "home")
    home.root.mkdir(mode=0o700)
    home.workspace.symlink_to(tmp_path / "work")

    prepare_home(home)

    assert (tmp_path / "work").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("path", ["home", "home/logs", "home/secrets"])
def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(mode=0o700, exist_ok=True)
    (tmp_path / path).write_text("")

    with pytest.raises(ConfigError, match=str(tmp_path / path)):
        prepare_home(Home(tmp_path / "home"))


def test_a_home_that_cannot_be_made_is_an_error_with_a_way_out() -> None:
    with pytest.raises(ConfigError) as refused:
        prepare_home(Home(Path("/proc/no/home")))

    assert "FERMIX_HOME" in str(refused.value.hint)
