"""config.toml is read whole and within limits, or refused with file and line."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fermix.config.source import SIZE_LIMIT_BYTES, parse_source, read_source
from fermix.errors import ConfigError, HomeUnsafe

HOSTILE = {
    "deep arrays": b"a = " + b"[" * 100_000,
    "deep tables": b"a = " + b"{a=" * 50_000,
    "long dotted key": b"a." * 100_000 + b"b = 1",
    "long table name": b"[" + b"a." * 100_000 + b"b]",
    "long quoted key": b'"a".' * 50_000 + b"b = 1",
    "long inline key": b"x = {" + b"a." * 100_000 + b"b = 1}",
    "huge number": b"a = " + b"9" * 100_000,
    "endless string": b'a = """' + b'\\"' * 100_000,
    "endless short string": b'a = "' + b'\\"' * 100_000,
    "zero bytes": b"\0" * 1000,
    "utf-16": "a = 1".encode("utf-16"),
    "not utf-8": b"a = '\xff'",
    "binary": bytes(range(256)) * 100,
}


def test_a_missing_file_reads_as_empty(tmp_path: Path) -> None:
    source = read_source(tmp_path / "config.toml")

    assert source.document == {}
    assert not source.exists


def test_a_byte_order_mark_at_the_start_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbf[gateway]\nrunning_turns = 3\n")

    assert read_source(tmp_path / "config.toml").document == {"gateway": {"running_turns": 3}}


def test_a_byte_order_mark_inside_is_an_error_naming_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"[gateway]\n\xef\xbb\xbfrunning_turns = 3\n")

    with pytest.raises(ConfigError, match=f"{path}, line 2: a byte-order mark"):
        read_source(path)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"a = 1\nb = \n", "line 2, column 5"),
        (b"a = 1\na = 2\n", "line 2, column 6"),
        (b"a = 'x", "line 1"),
        (b"a = 1\n\nb = '\xff'", "line 3: byte 0xff is not UTF-8"),
    ],
)
def test_a_broken_file_is_an_error_naming_the_line(text: bytes, place: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_source(Path("config.toml"), text)

    assert place in refused.value.message


def test_a_file_that_is_not_toml_is_told_with_the_way_back(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[[[\n")
    with pytest.raises(ConfigError, match=r"line 1, column 3 is not TOML: ") as refused:
        read_source(path)
    assert refused.value.hint == f"${{EDITOR:-vi}} {path}"

    (tmp_path / "config.toml.bak").write_text("")
    with pytest.raises(ConfigError) as refused:
        read_source(path)
    assert str(refused.value.hint).endswith("fermix config restore")


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_content_is_refused_quickly_and_briefly(raw: bytes) -> None:
    started = time.process_time()

    with pytest.raises(ConfigError) as refused:
        parse_source(Path("config.toml"), raw)

    assert len(refused.value.message) < 200
    assert time.process_time() - started < 5


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.touch()
    os.truncate(path, 1 << 40)

    with pytest.raises(ConfigError, match=f"larger than {SIZE_LIMIT_BYTES} bytes"):
        read_source(path)


def test_a_pipe_or_folder_in_its_place_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ConfigError, match="not a regular file"):
            read_source(path)


def test_a_link_to_nowhere_is_no_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.symlink_to(tmp_path / "gone.toml")

    with pytest.raises(ConfigError, match="is a link to"):
        read_source(path)


def test_a_file_anyone_may_change_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    path.chmod(0o666)

    with pytest.raises(HomeUnsafe) as refused:
        read_source(path)

    assert refused.value.hint == f"chmod 600 {path}"


def test_the_place_of_a_key_is_its_line_or_that_of_its_table() -> None:
    gateway = (
        b'[gateway]\nnote = """\nrunning_turns = 1\n"""\nnames = [\n "a", # [x]\n]\nrunning_turns = 2\n'
    )
    source = parse_source(Path("c.toml"), b"# top\n" + gateway + b'[providers."or"]\nx.y = 1\n')

    assert source.place(("gateway", "running_turns")) == "c.toml, line 9"
    assert source.place(("gateway", "other")) == "c.toml, line 2"
    assert source.place(("providers", "or", "x", "y")) == "c.toml, line 11"
    assert source.place(("elsewhere",)) == "c.toml"
