"""file_read and file_write on real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fermix.errors import ToolDenied, ToolFailed, ToolRetry
from fermix.tools.files import READ_LIMIT_BYTES, WRITE_LIMIT_BYTES, file_read, file_write
from tests.effects import World


def read(world: World, content: bytes | str, **arguments: object) -> str:
    data = content.encode() if isinstance(content, str) else content
    (world.workspace / "note").write_bytes(data)
    return file_read.run(world.context(), {"path": "note", **arguments})


def test_lines_come_with_their_numbers(world: World) -> None:
    assert read(world, "a\nb\n") == "1\ta\n2\tb"


def test_last_line_without_an_end_is_a_line(world: World) -> None:
    assert read(world, "a\n\nb") == "1\ta\n2\t\n3\tb"


def test_rest_is_counted_and_where_to_go_on_is_said(world: World) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 11))

    assert read(world, text, first_line=3, lines=2) == (
        "3\tline 3\n4\tline 4\n[6 more lines; go on with first_line=5]"
    )
    assert read(world, text, first_line=9, lines=2) == "9\tline 9\n10\tline 10"


def test_past_the_end_says_where_the_end_is(world: World) -> None:
    assert read(world, "a\nb\n", first_line=3) == "'note' has 2 lines; line 3 is past its end."


def test_empty_file_is_said_to_be_empty(world: World) -> None:
    assert read(world, "") == "'note' is empty."


def test_crlf_is_shown_as_lines_and_mentioned(world: World) -> None:
    assert read(world, "a\r\nb\r\n") == "1\ta\n2\tb\n[lines end in CRLF]"


def test_only_a_line_feed_ends_a_line_so_that_numbers_agree_with_other_programs(world: World) -> None:
    assert read(world, "a\fb\x0bc\u2028d\x85e\rf\n") == "1\ta\fb\x0bc\u2028d\x85e\rf"


def test_bytes_that_are_not_utf8_are_shown_as_such(world: World) -> None:
    assert read(world, b"caf\xe9 au lait\n") == (
        "1\tcaf\ufffd au lait\n[not UTF-8: bytes that could not be read are shown as \ufffd]"
    )


def test_binary_file_is_refused_with_its_size(world: World) -> None:
    with pytest.raises(ToolFailed, match="binary file of 8 bytes"):
        read(world, b"\x7fELF\0\0\1\2")


@pytest.mark.parametrize(
    "arguments", [{"first_line": 0}, {"lines": 0}, {"lines": 2001}, {"first_line": -1}]
)
def test_window_that_makes_no_sense_is_refused(world: World, arguments: dict[str, int]) -> None:
    with pytest.raises(ToolRetry, match="expected from 1, and 1 to 2000"):
        read(world, "a", **arguments)


def test_what_was_not_looked_at_in_a_huge_file_is_said(world: World) -> None:
    size = READ_LIMIT_BYTES + 10

    assert read(world, ("ü" * 49 + "\n") * (size // 99 + 1), lines=1).splitlines()[-1] == (
        f"[only the first {READ_LIMIT_BYTES} of {(size // 99 + 1) * 99} bytes were looked at]"
    )
    past = read(world, b"x\n" * size, first_line=READ_LIMIT_BYTES)
    assert "is past its end" not in past.splitlines()[-1]
    assert "were looked at" in past


def test_guest_cannot_read_outside(world: World) -> None:
    context = world.context()
    facts = world.turn(root=world.workspace / "people/x")

    with pytest.raises(ToolDenied):
        file_read.function(
            type(context)(turn=facts, effects=context.effects, progress=print, clock=None), "../y"
        )


def test_text_is_written_as_it_is(world: World) -> None:
    said = file_write.run(world.context(), {"path": "a/note", "content": "ä\r\nb"})

    target = world.workspace.resolve() / "a/note"
    assert target.read_bytes() == "ä\r\nb".encode()
    assert said == f"Wrote 5 bytes to {target}."


def test_empty_text_makes_an_empty_file(world: World) -> None:
    file_write.run(world.context(), {"path": "note", "content": ""})

    assert (world.workspace / "note").read_bytes() == b""


def test_too_much_text_is_refused_and_nothing_written(world: World) -> None:
    with pytest.raises(ToolRetry, match=f"at most {WRITE_LIMIT_BYTES}"):
        file_write.run(world.context(), {"path": "note", "content": "x" * (WRITE_LIMIT_BYTES + 1)})
    assert not (world.workspace / "note").exists()


def test_home_of_the_user_is_understood(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    file_write.run(world.context(), {"path": "~/note", "content": "x"})

    assert (tmp_path / "note").read_text() == "x"
