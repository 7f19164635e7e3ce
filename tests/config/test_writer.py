"""config.toml is changed key by key, whole or not at all, and never over someone else's change."""

from __future__ import annotations

import itertools
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.config.edits import Edit, edited
from fermix.config.source import parse_source
from fermix.config.writer import ConfigWriter, backup_of, backups_of
from fermix.errors import ConfigChanged, ConfigError, SettingInvalid, SettingUnknown
from tests.config.settings import SCHEMA

HAND_WRITTEN = """\
# mine

[gateway]  # the gate
running_turns = 3   # enough
names = [
  "a",  # first
]

# about telegram
[channels.telegram]
owner = 12345
"""


def writer(path: Path) -> ConfigWriter:
    return ConfigWriter(path, SCHEMA, user_home="/home/me")


def change(text: str, key: str, value: object) -> str:
    source = parse_source(Path("c.toml"), text.encode())
    return edited(source, [Edit(tuple(key.split(".")), value)]).decode()


def in_child(work: Callable[[], object]) -> int:
    """The id of a process that does the work; it ends with 0 when that did not raise."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_changed_value_leaves_every_other_character() -> None:
    assert change(HAND_WRITTEN, "gateway.running_turns", 9) == HAND_WRITTEN.replace(
        "turns = 3 ", "turns = 9 "
    )


def test_a_new_key_stands_below_its_table_not_below_the_next_ones_comment() -> None:
    text = change(HAND_WRITTEN, "gateway.level", "debug")

    assert text == HAND_WRITTEN.replace("]\n\n# about", ']\nlevel = "debug"\n\n# about')


def test_a_new_table_stands_at_the_end() -> None:
    text = change(HAND_WRITTEN, "providers.mine.model", "m")

    assert text == HAND_WRITTEN + '\n[providers.mine]\nmodel = "m"\n'


def test_the_last_key_taken_out_takes_its_table_along() -> None:
    assert change("[gateway]\nlevel = 'info'\n\n[channels.telegram]\nlow = 1\n", "gateway.level", None) == (
        "[channels.telegram]\nlow = 1\n"
    )


def test_a_comment_keeps_its_table() -> None:
    assert change("[gateway]\n# loud\nlevel = 'info'\n", "gateway.level", None) == "[gateway]\n# loud\n"


@pytest.mark.parametrize(
    "text",
    [
        "gateway = { running_turns = 1 }\n",
        "gateway.running_turns = 1\n",
        "[channels.telegram]\nlow = 1\n\n[gateway]\n\n[providers.a]\n",
        "[providers.a]\n[gateway]\n[providers.b]\n[channels]\ntelegram = {low = 1}\n",
    ],
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gateway.running_turns", 5),
        ("channels.telegram.low", 0),
        ("providers.b.model", "m"),
        ("providers.z.model", "m"),
    ],
)
def test_every_way_of_writing_tables_can_be_edited(text: str, key: str, value: object) -> None:
    document: object = tomllib.loads(change(text, key, value))

    for name in key.split("."):
        assert isinstance(document, dict)
        document = document[name]
    assert document == value


def test_what_cannot_be_edited_is_said_so() -> None:
    nested = "x = " + "[" * 300 + "]" * 300 + "\n"

    with pytest.raises(ConfigError, match="cannot be edited"):
        change(nested, "gateway.running_turns", 2)


def test_line_ends_and_byte_order_mark_are_kept() -> None:
    raw = b"\xef\xbb\xbf[gateway]\r\nlevel = 'info'\r\n"

    changed = edited(parse_source(Path("c.toml"), raw), [Edit(("gateway", "running_turns"), 2)])

    assert changed == raw + b"running_turns = 2\r\n"


@given(
    turns=st.integers(1, 1000),
    names=st.lists(st.text(st.characters(exclude_characters="\0\ufeff", exclude_categories=("Cs",)))),
    path=st.sampled_from(["/srv/a", "~/ü", "/with 'quotes\" and \\ and\ttab"]),
)
def test_whatever_is_set_is_what_is_read_again(turns: int, names: list[str], path: str) -> None:
    edits = [
        Edit(("gateway", "running_turns"), turns),
        Edit(("gateway", "names"), names),
        Edit(("gateway", "folder"), path),
    ]

    document = tomllib.loads(edited(parse_source(Path("c.toml"), HAND_WRITTEN.encode()), edits).decode())

    assert document["gateway"] == {"running_turns": turns, "names": names, "folder": path}
    assert document["channels"] == {"telegram": {"owner": 12345}}


def test_a_new_file_is_private_and_a_kept_one_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    writer(path).apply([Edit(("gateway", "running_turns"), 2)])
    first = path.stat().st_mode & 0o777
    path.chmod(0o640)
    writer(path).apply([Edit(("gateway", "running_turns"), 3)])

    assert (first, path.stat().st_mode & 0o777) == (0o600, 0o640)


def test_the_previous_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)

    writer(path).apply([Edit(("gateway", "running_turns"), 9)])

    assert backup_of(path).read_text() == HAND_WRITTEN
    assert backup_of(path).stat().st_mode & 0o777 == 0o600


def kept(path: Path) -> list[str]:
    return [each.read_text() for each in backups_of(path) if each.exists()]


def test_the_last_five_different_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    for turns in (4, 5, 4, 5, 6, 7, 8, 9):
        writer(path).apply([Edit(("gateway", "running_turns"), turns)])

    texts = [HAND_WRITTEN.replace("= 3", f"= {turns}") for turns in (8, 7, 6, 5, 4)]
    assert kept(path) == texts
    assert len(list(tmp_path.iterdir())) == 7  # the file, its lock, five backups


def test_a_file_that_was_broken_by_hand_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    writer(path).apply([Edit(("gateway", "running_turns"), 9)])
    path.write_text("[gateway\nrunning")

    assert writer(path).restore().number == 0

    assert path.read_text() == HAND_WRITTEN
    assert kept(path) == ["[gateway\nrunning", HAND_WRITTEN]
    assert path.stat().st_mode & 0o777 == 0o644


def test_taking_back_twice_is_where_it_began(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    writer(path).apply([Edit(("gateway", "running_turns"), 9)])
    changed = path.read_text()

    writer(path).restore()
    assert path.read_text() == HAND_WRITTEN
    writer(path).restore()
    assert path.read_text() == changed


def test_a_removed_file_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    writer(path).apply([Edit(("gateway", "running_turns"), 9)])
    path.unlink()

    writer(path).restore()
    assert path.read_text() == HAND_WRITTEN
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("number", [None, 0, 3])
def test_a_backup_that_would_not_load_is_not_put_back(tmp_path: Path, number: int | None) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    backup_of(path).write_text("[gateway]\nrunning_turns = 'many'\n")

    with pytest.raises(ConfigError):
        writer(path).restore(number)

    assert path.read_text() == HAND_WRITTEN
    (listed,) = writer(path).backups()
    assert "running_turns" in str(listed.problem)


@pytest.mark.slow
def test_killed_restores_leave_a_file_that_loads(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    writer(path).apply([Edit(("gateway", "running_turns"), 9)])
    whole = {HAND_WRITTEN, path.read_text()}
    dice = random.Random(3)
    for _ in range(40):
        child = in_child(lambda: [writer(path).restore() for _ in range(50)])
        time.sleep(dice.random() / 50)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert path.read_text() in whole
        assert set(kept(path)) & whole


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    before = path.stat()

    writer(path).apply([Edit(("gateway", "running_turns"), 3)])

    assert path.stat().st_ino == before.st_ino
    assert not backup_of(path).exists()


def test_someone_elses_change_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    seen = parse_source(path, path.read_bytes())
    path.write_text("[gateway]\nlevel = 'debug'\n")

    with pytest.raises(ConfigChanged):
        writer(path).apply([Edit(("gateway", "running_turns"), 9)], based_on=seen.digest)

    assert path.read_text() == "[gateway]\nlevel = 'debug'\n"


def test_a_file_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    absent = parse_source(path, b"")
    path.write_text(HAND_WRITTEN)

    with pytest.raises(ConfigChanged):
        writer(path).apply([Edit(("gateway", "running_turns"), 9)], based_on=absent.digest)


def test_edits_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    children = [
        in_child(lambda edit=edit: writer(path).apply([edit]))
        for edit in (Edit(("providers", f"p{number}", "model"), "m") for number in range(16))
    ]

    assert [ended(child) for child in children] == [0] * 16
    assert len(tomllib.loads(path.read_text())["providers"]) == 16


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)
    moments = random.Random(7)

    def write_for_ever() -> None:
        for turns in itertools.cycle(range(1, 1000)):
            writer(path).apply([Edit(("gateway", "running_turns"), turns)])

    for _ in range(20):
        child = in_child(write_for_ever)
        time.sleep(moments.uniform(0.01, 0.06))
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        turns = tomllib.loads(path.read_text())["gateway"]["running_turns"]
        assert path.read_text() == HAND_WRITTEN.replace("turns = 3 ", f"turns = {turns} ")


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (Edit(("gateway", "running_turns"), 0), SettingInvalid),
        (Edit(("gateway", "runing_turns"), 1), SettingUnknown),
        (Edit(("channels", "telegram", "low"), 5), SettingInvalid),
    ],
)
def test_what_would_not_load_is_not_written(tmp_path: Path, edit: Edit, error: type[ConfigError]) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)

    with pytest.raises(error):
        writer(path).apply([edit])

    assert path.read_text() == HAND_WRITTEN


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "fermix.toml"
    real.parent.mkdir()
    real.write_text(HAND_WRITTEN)
    home = tmp_path / "home"
    home.mkdir()
    path = home / "config.toml"
    path.symlink_to("../dotfiles/fermix.toml")

    writer(path).apply([Edit(("gateway", "running_turns"), 9)])

    assert path.is_symlink()
    assert "running_turns = 9" in real.read_text()
    assert [each.name for each in real.parent.iterdir()] == ["fermix.toml"]


def test_a_folder_that_takes_no_files_is_named() -> None:
    folder = Path(tempfile.mkdtemp())  # not tmp_path: a child without root's powers must reach it
    path = folder / "config.toml"
    path.write_text(HAND_WRITTEN)
    nobody = 65534

    def write_as_nobody() -> None:
        if os.geteuid() == 0:
            os.setuid(nobody)
        with pytest.raises(ConfigError, match="Cannot write"):
            writer(path).apply([Edit(("gateway", "running_turns"), 9)])

    if os.geteuid() == 0:
        os.chown(path, nobody, -1)
        os.chown(folder, nobody, -1)
    folder.chmod(0o500)
    try:
        assert ended(in_child(write_as_nobody)) == 0
        assert path.read_text() == HAND_WRITTEN
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(HAND_WRITTEN)

    def write_into_full_disk() -> None:
        # A file size limit of its own stands for the full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
        with pytest.raises(ConfigError, match="The file is as it was"):
            writer(path).apply([Edit(("gateway", "running_turns"), 9)])

    assert ended(in_child(write_into_full_disk)) == 0
    assert path.read_text() == HAND_WRITTEN
    assert sorted(each.name for each in tmp_path.iterdir()) == ["config.toml", "config.toml.lock"]
