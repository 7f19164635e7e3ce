"""Deleted words leave the history of the chat's prompt, other ones stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

from fermix.daemon.typed import forget
from fermix.gateway.erase import digest_of


@pytest.fixture
def history(tmp_path: Path) -> FileHistory:
    made = FileHistory(str(tmp_path / "chat_history"))
    for text in ("first", "two\nlines", "+plus\n\n# no comment", "  first ", "last"):
        made.store_string(text)
    return made


@pytest.mark.parametrize(
    ("deleted", "left"),
    [
        ("first", ["last", "+plus\n\n# no comment", "two\nlines"]),
        ("two\nlines", ["last", "  first ", "+plus\n\n# no comment", "first"]),
        ("+plus\n\n# no comment", ["last", "  first ", "two\nlines", "first"]),
        ("two", ["last", "  first ", "+plus\n\n# no comment", "two\nlines", "first"]),
    ],
)
def test_only_whole_texts_that_were_deleted_go(history: FileHistory, deleted: str, left: list[str]) -> None:
    path = Path(history.filename)
    before = path.read_bytes()

    count = forget(path, {digest_of(deleted)})

    assert list(history.load_history_strings()) == left
    assert (path.read_bytes() == before) == (count == 0)
    if count:
        assert path.stat().st_mode & 0o777 == 0o600


def test_text_with_a_carriage_return_goes_whole(tmp_path: Path) -> None:
    history = FileHistory(str(tmp_path / "chat_history"))
    for text in ("before\rafter", "last"):
        history.store_string(text)

    assert forget(Path(history.filename), {digest_of("before\rafter")}) == 1
    assert list(history.load_history_strings()) == ["last"]


def test_no_history_is_no_trouble(tmp_path: Path) -> None:
    assert forget(tmp_path / "none", {b"x"}) == 0


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"+", b"\n\n", b"no plus at all"])
def test_garbage_is_left_alone(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "chat_history"
    path.write_bytes(raw)
    forget(path, {digest_of("words")})
    assert path.read_bytes() == raw
