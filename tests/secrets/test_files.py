"""Secrets in files are private from the first byte, and refused when they are not."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fermix.errors import ConfigError, HomeUnsafe, UsageError
from fermix.secret import Secret
from fermix.secrets.files import FileSecrets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "secrets"
    path.mkdir(mode=0o700)
    return path


def place(folder: Path, name: str, raw: bytes, mode: int = 0o600) -> Path:
    path = folder / name
    path.write_bytes(raw)
    path.chmod(mode)
    return path


def revealed(folder: Path, name: str) -> str:
    secret = FileSecrets(folder).get(name)
    assert secret is not None
    return secret.reveal()


def test_a_kept_secret_is_found_again(folder: Path) -> None:
    FileSecrets(folder).set("key", Secret("s3cret value"))

    assert revealed(folder, "key") == "s3cret value"
    assert FileSecrets(folder).names() == ["key"]


def test_files_and_folder_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        FileSecrets(tmp_path / "secrets").set("key", Secret("value"))
    finally:
        os.umask(before)

    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "secrets" / "key").stat().st_mode & 0o777 == 0o600


def test_replacing_and_removing_leave_nothing_behind(folder: Path) -> None:
    store = FileSecrets(folder)
    store.set("key", Secret("old"))
    store.set("key", Secret("new"))

    assert revealed(folder, "key") == "new"
    assert store.remove("key")
    assert not store.remove("key")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("raw", [b"value\n", b"value\r\n", b"value", b"\xef\xbb\xbfvalue\n"])
def test_what_an_editor_adds_is_not_part_of_the_secret(folder: Path, raw: bytes) -> None:
    place(folder, "key", raw)

    assert revealed(folder, "key") == "value"


def test_inner_line_ends_are_part_of_it(folder: Path) -> None:
    place(folder, "key", b"-----BEGIN\nabc\n-----END\n")

    assert revealed(folder, "key") == "-----BEGIN\nabc\n-----END"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o610])
def test_a_file_others_can_reach_is_refused_with_its_repair(folder: Path, mode: int) -> None:
    path = place(folder, "key", b"value", mode)

    with pytest.raises(HomeUnsafe) as refused:
        FileSecrets(folder).get("key")

    assert f"mode {mode:04o}" in refused.value.message
    assert refused.value.hint == f"chmod 600 {path}"


def test_a_folder_others_can_reach_is_refused_for_reading_and_writing(folder: Path) -> None:
    place(folder, "key", b"value")
    folder.chmod(0o755)

    with pytest.raises(HomeUnsafe):
        FileSecrets(folder).get("key")
    with pytest.raises(HomeUnsafe):
        FileSecrets(folder).set("other", Secret("value"))
    assert [each.name for each in folder.iterdir()] == ["key"]


@pytest.mark.parametrize("raw", [b"", b"\n", b"  \n", b"a\0b", b"\xff\xfe", b"x" * 100_000])
def test_what_is_no_secret_is_refused_without_showing_it(folder: Path, raw: bytes) -> None:
    path = place(folder, "key", raw)

    with pytest.raises(ConfigError) as refused:
        FileSecrets(folder).get("key")

    assert str(path) in refused.value.message
    assert "xxxx" not in refused.value.message
    assert refused.value.__cause__ is None


def test_a_pipe_in_its_place_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "key", 0o600)

    with pytest.raises(ConfigError, match="not a regular file"):
        FileSecrets(folder).get("key")


@pytest.mark.parametrize("name", ["", "../auth.json", "a/b", ".hidden", "UPPER", "a b", "a\n", "x" * 65])
def test_a_name_never_leads_out_of_the_folder(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a secret's name"):
        FileSecrets(folder).get(name)


def test_a_missing_folder_holds_nothing(tmp_path: Path) -> None:
    store = FileSecrets(tmp_path / "secrets")

    assert store.get("key") is None
    assert store.names() == []


def test_full_disk_is_answered_with_a_look_at_the_disk(folder: Path) -> None:
    command = ["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", str(folder)]
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    code = f"""
from pathlib import Path
from fermix.errors import ConfigError
from fermix.secret import Secret
from fermix.secrets.files import FileSecrets
Path({str(folder / "fill")!r}).write_bytes(bytes(4096))
try:
    FileSecrets(Path({str(folder)!r})).set("key", Secret("s"))
except ConfigError as full:
    print(full.hint)
"""
    done = subprocess.run(
        [*namespace, "sh", "-ec", f'{shlex.join(command)}; exec "$0" -c "$1"', sys.executable, code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == f"df -h {folder}\n", done.stderr
