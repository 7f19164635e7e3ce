"""Where a report looks for the secrets it must not carry."""

from __future__ import annotations

import json
import stat
import tarfile
from pathlib import Path

import pytest

from fermix.errors import OwnerError
from fermix.paths import Home
from fermix.secret import Secret
from fermix.setup.doctor.bundle import known_secrets, masked_config, members, said_lately, write
from fermix.setup.doctor.masking import Mask
from tests.secrets import conftest as keyrings
from tests.setup.doctor.conftest import make_database

desktop = keyrings.desktop


def test_secret_of_the_keyring_is_known_also_where_the_environment_hides_it(
    desktop: keyrings.Desktop,
) -> None:
    assert desktop.stores().set("mine", Secret("kept-in-the-Keyring")) == "keyring"
    environment = {**desktop.environment, "FERMIX_SECRET_MINE": "newer-in-the-Environment"}

    found = known_secrets(desktop.home, environment)

    assert {"kept-in-the-Keyring", "newer-in-the-Environment"} <= found


def test_locked_keyring_keeps_nothing_from_being_reported(desktop: keyrings.Desktop) -> None:
    desktop.stores().set("mine", Secret("kept-in-the-Keyring"))
    desktop.mood("locked")
    (desktop.home.secrets / "other").write_text("kept-in-a-File")

    assert "kept-in-a-File" in known_secrets(desktop.home, desktop.environment)


def test_settings_named_like_secrets_are_known_in_any_depth(home: Home) -> None:
    home.config.write_text('[channels.x]\nauth = { bot_token = "deep-Token-1" }\nkeys = ["not-one"]\n')

    found = known_secrets(home, {})

    assert "deep-Token-1" in found
    assert "not-one" not in found


def test_texts_of_several_lines_are_masked_in_settings() -> None:
    shown = masked_config('[agent]\nx = """\nwords of a person\n"""\ny = 1\n', Mask([]))

    assert shown == '[agent]\nx = "***"\ny = 1\n'


def test_facts_stay_json(home: Home) -> None:
    made = members({}, {"a.json": {"key": "v" * 9, "n": [1, None]}}, Mask(["v" * 9]))

    assert json.loads(made["a.json"]) == {"key": "***", "n": [1, None]}


def test_what_was_said_is_read_where_it_can_be(home: Home) -> None:
    assert said_lately(home, is_used=False) == set()
    make_database(home)
    assert said_lately(home, is_used=False) == set()
    home.database.write_bytes(b"garbage")
    assert said_lately(home, is_used=False) == set()


def test_report_names_no_user_and_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.tar.gz"
    write(path, {"a.txt": b"1"}, now_s=1_796_000_000)

    with tarfile.open(path) as tar:
        (entry,) = tar.getmembers()
    assert (entry.name, entry.uname, entry.uid, entry.size) == ("mine/a.txt", "", 0, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(OwnerError):
        write(path, {"a.txt": b"2"}, now_s=1_796_000_000)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.tar.gz"]
