"""Where a turn works and where it may: the folders of people."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.daemon.folders import folder_name, folder_of, root_of
from fermix.gateway.inbox import InboxEntry
from fermix.paths import Home
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Standing
from tests.fakes import inbound


def entry(standing: Standing, **fields: str) -> InboxEntry:
    return InboxEntry("i", "t", inbound(**fields), standing, "received", 0)


def test_operator_works_where_the_command_line_is(tmp_path: Path) -> None:
    made, home = entry(OPERATOR_ATTENDED, cwd=str(tmp_path)), Home(tmp_path / "home")

    assert (folder_of(made, home), root_of(made, home)) == (tmp_path, None)


@pytest.mark.parametrize("cwd", ["/no/such/folder", "/etc/passwd", "/a\0b", None])
def test_operator_without_a_folder_works_in_the_workspace(tmp_path: Path, cwd: str | None) -> None:
    home = Home(tmp_path)

    assert folder_of(entry(OPERATOR_ATTENDED, cwd=cwd), home) == home.workspace


def test_guest_works_in_the_own_folder_and_nowhere_else(tmp_path: Path) -> None:
    home = Home(tmp_path)
    made = entry(GUEST_ATTENDED, channel="telegram", sender="200", cwd="/etc")

    assert folder_of(made, home) == root_of(made, home) == home.workspace / "people/telegram/200"


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_two_people_share_a_folder(first: str, second: str) -> None:
    names = folder_name(first), folder_name(second)

    assert (names[0].casefold() == names[1].casefold()) is (first == second)
    for name in names:
        assert 0 < len(name) <= 130 and name.isascii() and "/" not in name and not name.startswith(".")


@pytest.mark.parametrize(
    "pair", [("a.b", "a_b"), ("A", "a"), ("a", "a_"), ("", "_"), ("ü", "u"), ("_2e_", ".")]
)
def test_ids_that_look_alike_have_folders_of_their_own(pair: tuple[str, str]) -> None:
    assert folder_name(pair[0]) != folder_name(pair[1])
