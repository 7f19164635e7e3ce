"""Uploads: pieces, limits, clean names, old ones swept."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermix.daemon.blobs import KEPT_MS, LIMIT_BYTES, Blobs, clean_name
from fermix.errors import OwnerError, UsageError
from fermix.paths import Home
from fermix.tasks import ThreadPool
from tests.fakes import FakeClock


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def blobs(home: Home) -> Iterator[Blobs]:
    pool = ThreadPool(2)
    yield Blobs(home, clock=FakeClock(), pool=pool)
    pool.stop()


def test_pieces_are_put_together_and_only_their_owner_can_read_them(blobs: Blobs, home: Home) -> None:
    blob_id, size = blobs.add(None, b"hel")
    assert blobs.add(blob_id, b"lo") == (blob_id, 5)

    path = home.blobs / blob_id
    assert size == 3 and path.read_bytes() == b"hello"
    assert path.stat().st_mode & 0o777 == 0o600 and home.blobs.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("blob_id", ["01HF7YAT00000000000000000A", "../config.toml", "", "x" * 500])
def test_unknown_upload_is_refused(blobs: Blobs, blob_id: str) -> None:
    with pytest.raises(UsageError):
        blobs.add(blob_id, b"x")
    with pytest.raises(UsageError):
        blobs.take(blob_id, "name", "text/plain")


def test_upload_over_the_limit_is_refused_and_what_is_there_stays(blobs: Blobs, home: Home) -> None:
    blob_id, _ = blobs.add(None, b"x")
    os.truncate(home.blobs / blob_id, LIMIT_BYTES - 1)

    assert blobs.add(blob_id, b"y") == (blob_id, LIMIT_BYTES)
    with pytest.raises(UsageError, match=f"over {LIMIT_BYTES >> 20} MiB"):
        blobs.add(blob_id, b"z")
    assert (home.blobs / blob_id).stat().st_size == LIMIT_BYTES


def test_piece_that_finds_no_room_can_be_sent_again(blobs: Blobs, home: Home) -> None:
    blob_id, _ = blobs.add(None, b"one ")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6, before[1]))
    try:
        with pytest.raises(OwnerError, match="Cannot store the upload"):
            blobs.add(blob_id, b"two ")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    blobs.add(blob_id, b"two ")

    assert (home.blobs / blob_id).read_bytes() == b"one two "


def test_abandoned_uploads_go_while_the_daemon_runs(home: Home) -> None:
    pool, clock = ThreadPool(2), FakeClock()
    blobs = Blobs(home, clock=clock, pool=pool)
    old_id, _ = blobs.add(None, b"old")
    os.utime(home.blobs / old_id, (clock.ms / 1000, clock.ms / 1000))

    clock.ms += KEPT_MS + 1
    new_id, _ = blobs.add(None, b"new")
    pool.stop()

    assert [path.name for path in home.blobs.iterdir()] == [new_id]


def test_link_in_place_of_an_upload_is_not_followed(blobs: Blobs, home: Home, tmp_path: Path) -> None:
    blob_id, _ = blobs.add(None, b"x")
    target = tmp_path / "target"
    target.write_text("mine")
    (home.blobs / blob_id).unlink()
    (home.blobs / blob_id).symlink_to(target)

    with pytest.raises(OwnerError):
        blobs.add(blob_id, b"evil")
    assert target.read_text() == "mine"


def test_upload_can_be_taken_twice_under_one_name_as_a_message_sent_twice_does(blobs: Blobs) -> None:
    blob_id, _ = blobs.add(None, b"hello")

    first = blobs.take(blob_id, "note.txt", "text/plain")

    assert blobs.take(blob_id, "note.txt", "text/plain") == first
    assert Path(first.path).read_bytes() == b"hello" and first.size_bytes == 5


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ("report.pdf", "report.pdf"),
        ("../../.ssh/authorized_keys", "authorized_keys"),
        ("..\\..\\windows\\system.ini", "system.ini"),
        ("/etc/passwd", "passwd"),
        (".bashrc", "bashrc"),
        ("...", "file"),
        ("..", "file"),
        ("", "file"),
        ("/", "file"),
        ("a/", "file"),
        ("a\0b\n\x1b[31mc", "ab[31mc"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ('a:b*c?"<>|d', "abcd"),
        ("name. . ", "name"),
        ("Übung 1.txt", "Übung 1.txt"),
        ("\ud800", "file"),
    ],
)
def test_name_from_a_sender_becomes_a_plain_file_name(given: str, cleaned: str) -> None:
    assert clean_name(given) == cleaned


@pytest.mark.parametrize("given", ["x" * 5000, "🙂" * 120, "ü" * 300 + ".txt"])
def test_long_name_fits_the_file_system(blobs: Blobs, given: str) -> None:
    blob_id, _ = blobs.add(None, b"x")

    taken = blobs.take(blob_id, given, "text/plain")

    assert Path(taken.path).read_bytes() == b"x" and len(taken.name.encode()) <= 200


def test_old_uploads_are_swept_and_what_cannot_be_does_no_harm(home: Home) -> None:
    pool, clock = ThreadPool(1), FakeClock()
    blobs = Blobs(home, clock=clock, pool=pool)
    blobs.sweep()
    old, _ = blobs.add(None, b"x")
    young, _ = blobs.add(None, b"y")
    (home.blobs / "folder").mkdir()
    for name, age_ms in ((old, KEPT_MS + 1000), (young, KEPT_MS - 1000), ("folder", KEPT_MS + 1000)):
        moment_s = (clock.ms - age_ms) / 1000
        os.utime(home.blobs / name, (moment_s, moment_s))

    blobs.sweep()

    assert sorted(path.name for path in home.blobs.iterdir()) == sorted([young, "folder"])
    pool.stop()
