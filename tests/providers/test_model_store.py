"""Model files of the home: copied whole, checked, removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fermix.errors import FermixError, ModelUnknown, ModelUnusable, OwnerError
from fermix.paths import Home
from fermix.providers.gguf import check_whole
from fermix.providers.model_store import ModelStore, _took
from tests.providers.model_host import model_bytes

WHOLE = model_bytes()


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    made = ModelStore(Home(tmp_path / "home"))
    made.folder.mkdir(parents=True)
    return made


def add(store: ModelStore, source: Path, name: str = "tiny", **options: object) -> Path:
    return store.add_file(source, name, **{"sha256": None, "progress": lambda *_: None, **options})


def test_copy_is_whole_private_and_independent(store: ModelStore, tmp_path: Path) -> None:
    source = tmp_path / "a.gguf"
    source.write_bytes(WHOLE)

    path = add(store, source)
    source.write_bytes(b"changed")

    assert path.read_bytes() == WHOLE
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(store.folder) == ["tiny.gguf"]  # noqa: PTH208 (every name, hidden ones too)


@pytest.mark.parametrize("cut", [0, 3, 10, 24, 60, 100, 150])
def test_file_that_ends_too_early_is_refused(store: ModelStore, tmp_path: Path, cut: int) -> None:
    source = tmp_path / "a.gguf"
    source.write_bytes(WHOLE[:cut])

    with pytest.raises(ModelUnusable):
        add(store, source)
    assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize("at", range(4, 140, 3))
def test_damaged_head_never_hangs_or_takes_all_memory(tmp_path: Path, at: int) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(WHOLE[:at] + b"\xff\xff\xff" + WHOLE[at + 3 :])
    try:
        check_whole(path, "a")
    except ModelUnusable as told:
        assert "'a'" in told.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../evil", "is no name for a model"),
        (".hidden", "is no name for a model"),
        ("", "is no name for a model"),
        ("x" * 101, "is no name for a model"),
        ("big-00001-of-00003", "one piece of a split model"),
    ],
)
def test_name_that_is_none_is_refused(store: ModelStore, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(OwnerError, match=words):
        add(store, tmp_path / "a.gguf", name)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused(store: ModelStore, tmp_path: Path, kind: str) -> None:
    source = tmp_path / "a.gguf"
    source.mkdir() if kind == "folder" else os.mkfifo(source)
    with pytest.raises(FermixError, match="is not a regular file"):
        add(store, source)


def test_model_that_is_there_is_not_replaced(store: ModelStore, tmp_path: Path) -> None:
    source = tmp_path / "a.gguf"
    source.write_bytes(WHOLE)
    add(store, source)
    with pytest.raises(OwnerError, match="There is a model 'tiny' already"):
        add(store, source)


def test_lock_that_its_holder_has_removed_is_nobodys(tmp_path: Path) -> None:
    lock = tmp_path / ".tiny.lock"
    with lock.open("w") as late:
        lock.unlink()
        assert not _took(late.fileno(), lock)

        with lock.open("w") as newer:
            assert not _took(late.fileno(), lock)
            assert _took(newer.fileno(), lock)


def test_link_is_removed_and_what_it_leads_to_stays(store: ModelStore, tmp_path: Path) -> None:
    source = tmp_path / "a.gguf"
    source.write_bytes(WHOLE)
    (store.folder / "linked.gguf").symlink_to(source)

    store.remove("linked")

    assert source.exists()
    assert store.names() == []


def test_unknown_model_is_answered_with_the_nearest(store: ModelStore) -> None:
    (store.folder / "qwen.gguf").write_bytes(WHOLE)
    with pytest.raises(ModelUnknown, match=r"No model named 'qwenn'\. Did you mean 'qwen'"):
        store.remove("qwenn")


def test_unfinished_download_is_removed_by_its_name(store: ModelStore) -> None:
    (store.folder / "half.gguf.part").write_bytes(b"GGUF")
    (store.folder / "half.gguf.part.json").write_text('{"url": "http://x", "etag": "", "total": 9}')

    assert [each.name for each in store.unfinished()] == ["half"]
    assert store.remove("half") == 4
    assert list(store.folder.iterdir()) == []
