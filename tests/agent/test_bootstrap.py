"""The owner's files: seeded once, never written again, read whatever they hold."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from fermix.agent.bootstrap import (
    IDENTITY,
    LIMIT_BYTES,
    PERSONA,
    RULES,
    Bootstrap,
    read,
    seed,
    without_comments,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "bootstrap" / "main"
    seed(made)
    return made


def test_seeded_files_say_what_counts_without_them_and_are_the_owners_alone(folder: Path) -> None:
    files = sorted(folder.iterdir())

    assert read(folder) == Bootstrap()
    assert [file.name for file in files] == ["IDENTITY.md", "PERSONA.md", "RULES.md"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert all("fermix reload" in file.read_text() for file in files)


def test_what_the_owner_changed_or_removed_stays_so(folder: Path) -> None:
    (folder / "IDENTITY.md").write_text("I am Hal.\n")
    (folder / "PERSONA.md").unlink()

    seed(folder)

    assert read(folder) == Bootstrap("I am Hal.", RULES, "")


def test_folder_that_is_there_is_not_filled(tmp_path: Path) -> None:
    folder = tmp_path / "main"
    folder.mkdir()

    seed(folder)

    assert list(folder.iterdir()) == []
    assert read(folder) == Bootstrap("", "", "")


def test_start_that_was_killed_while_seeding_is_made_good(tmp_path: Path) -> None:
    folder = tmp_path / "bootstrap" / "main"
    half = folder.with_name(".main.new")
    half.mkdir(parents=True)
    (half / "IDENTITY.md").write_text("")

    seed(folder)

    assert read(folder) == Bootstrap()
    assert not half.exists()


@pytest.mark.parametrize("kind", ["folder", "pipe", "not text"])
def test_file_that_cannot_be_read_is_named_and_replaced_by_the_built_in_words(
    folder: Path, kind: str
) -> None:
    path = folder / "PERSONA.md"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"\xff\xfe words")

    words = read(folder)

    assert (words.identity, words.persona) == (IDENTITY, PERSONA)
    assert len(words.problems) == 1
    assert str(path) in words.problems[0]
    assert ("(it is not UTF-8 text)" in words.problems[0]) == (kind == "not text")


@pytest.mark.parametrize("sign", ["x", "ü", "🙂"])
def test_file_that_is_too_long_is_cut_and_named(folder: Path, sign: str) -> None:
    (folder / "RULES.md").write_text("!" + sign * LIMIT_BYTES)

    words = read(folder)

    assert words.rules.startswith("!" + sign)
    assert LIMIT_BYTES - 4 < len(words.rules.encode()) <= LIMIT_BYTES
    assert "RULES.md' is longer than" in words.problems[0]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<!-- a -->\nwords\n", "words"),
        ("one <!-- a\nb --> two", "one  two"),
        ("words <!-- never closed", "words"),
        ("a --> b", "a --> b"),
        ("<!---->", ""),
    ],
)
def test_comments_are_for_the_owner(text: str, left: str) -> None:
    assert without_comments(text) == left


def test_many_open_comments_take_no_time() -> None:
    started_s = time.perf_counter()
    without_comments("<!--" * (LIMIT_BYTES // 4))
    without_comments("<!---->" * (LIMIT_BYTES // 7))

    assert time.perf_counter() - started_s < 0.5
