"""File effects on real files: where they may go, and what they leave there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fermix.capabilities.effects import ReadFile, RunCommand, WriteFile
from fermix.errors import Cancelled, FermixError, ToolDenied, ToolFailed
from fermix.tasks import Cancel
from tests.effects import World


def test_file_is_read_from_the_working_folder(world: World) -> None:
    (world.workspace / "note").write_bytes(b"hello")

    part = world.effects.read_file("note", world.turn())

    assert (part.content, part.size_bytes) == (b"hello", 5)


def test_window_of_a_huge_file_is_read_without_the_rest(world: World) -> None:
    path = world.workspace / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 39)
        file.write(b"middle")

    part = world.effects.read_file("huge", world.turn(), offset_bytes=1 << 39, limit_bytes=6)

    assert (part.content, part.size_bytes) == (b"middle", 1 << 40)


def test_written_file_is_whole_and_its_folders_are_made(world: World) -> None:
    written = world.effects.write_file("a/b/note", b"hello", world.turn())

    assert written == world.workspace.resolve() / "a/b/note"
    assert written.read_bytes() == b"hello"
    assert stat.S_IMODE(written.stat().st_mode) == 0o644
    assert [path.name for path in written.parent.iterdir()] == ["note"]


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o755), (0o600, 0o600), (0o4755, 0o755)])
def test_replaced_file_keeps_its_permissions_but_no_set_user_id(
    world: World, before: int, after: int
) -> None:
    path = world.workspace / "tool"
    path.write_text("old")
    path.chmod(before)

    world.effects.write_file("tool", b"new", world.turn())

    assert stat.S_IMODE(path.stat().st_mode) == after
    assert path.read_text() == "new"


def test_name_as_long_as_the_file_system_takes_can_be_written(world: World) -> None:
    name = "🙂" * 63

    world.effects.write_file(name, b"x", world.turn())

    assert (world.workspace / name).read_bytes() == b"x"


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("folder", "is a folder"),
        ("pipe", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        ("note/below", "Not a directory|File exists"),
        ("x" * 300, "File name too long"),
        ("", "not a path"),
        ("a\0b", "not a path"),
        ("\ud800", "not a path"),
        ("~nobody-of-that-name/x", "not a path"),
    ],
)
def test_path_that_is_no_file_is_refused_with_the_reason(
    world: World, verb: str, path: str, words: str
) -> None:
    (world.workspace / "folder").mkdir()
    (world.workspace / "note").write_text("x")
    os.mkfifo(world.workspace / "pipe")

    with pytest.raises(ToolFailed, match=words):
        use(world, verb, path, world.turn())
    assert (world.workspace / "folder").is_dir()
    assert (world.workspace / "pipe").is_fifo()


def test_missing_file_is_named(world: World) -> None:
    with pytest.raises(ToolFailed, match=r"none.*No such file"):
        world.effects.read_file("none", world.turn())


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize(
    "path",
    [
        "../config.toml",
        "../secrets/key",
        "../memory.db",
        "link",
        "folder-link/config.toml",
        "new/../../config.toml",
        "/proc/self/cwd/../nothing",
    ],
)
def test_fermix_own_files_are_out_of_reach_for_everybody(world: World, verb: str, path: str) -> None:
    (world.workspace / "link").symlink_to(world.home / "config.toml")
    (world.workspace / "folder-link").symlink_to(world.home)

    turn = world.turn(cwd=world.workspace)
    if path.startswith("/proc"):
        path = f"/proc/self/root{world.home}/config.toml"
    with pytest.raises(ToolDenied, match="belongs to fermix"):
        use(world, verb, path, turn)
    assert (world.home / "config.toml").read_text() == "secret"


def test_open_descriptor_of_fermix_own_file_is_no_way_in(world: World) -> None:
    with (world.home / "config.toml").open() as file, pytest.raises(ToolDenied):
        world.effects.read_file(f"/dev/fd/{file.fileno()}", world.turn())


@pytest.mark.parametrize("path", ["/proc/self/environ", f"/proc/{os.getpid()}/mem", "/proc/1/cmdline"])
@pytest.mark.parametrize("verb", ["read", "write"])
def test_memory_and_environment_of_processes_are_out_of_reach(world: World, verb: str, path: str) -> None:
    with pytest.raises(ToolDenied, match="/proc"):
        use(world, verb, path, world.turn())


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize(
    "path", ["../other/note", "/etc/passwd", "link", "dangling", "folder-link/new", "~/x", "inner/../../x"]
)
def test_guest_stays_below_the_own_folder(world: World, tmp_path: Path, verb: str, path: str) -> None:
    root = world.workspace / "people/guest"
    root.mkdir(parents=True)
    outside = tmp_path / "outside.txt"
    (root / "link").symlink_to("/etc/passwd")
    (root / "dangling").symlink_to(outside)
    (root / "folder-link").symlink_to(tmp_path)

    with pytest.raises(ToolDenied, match="outside the folder"):
        use(world, verb, path, world.turn(root=root, cwd=root))
    assert not outside.exists()
    assert world.recorded == []


def test_guest_uses_the_own_folder_by_relative_and_absolute_paths(world: World) -> None:
    root = world.workspace / "people/guest"
    turn = world.turn(root=root, cwd=root)

    world.effects.write_file("note", b"mine", turn)

    assert world.effects.read_file(str(root / "note"), turn).content == b"mine"


def test_link_is_written_through_to_what_it_names(world: World, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    (world.workspace / "link").symlink_to(target)

    assert world.effects.write_file("link", b"new", world.turn()) == target.resolve()
    assert target.read_text() == "new"
    assert (world.workspace / "link").is_symlink()


def test_loop_of_links_is_refused(world: World) -> None:
    (world.workspace / "a").symlink_to("b")
    (world.workspace / "b").symlink_to("a")

    for verb in ("read", "write"):
        with pytest.raises(FermixError):
            use(world, verb, "a", world.turn())


def test_write_that_fails_leaves_the_old_file_and_no_draft(world: World) -> None:
    (world.workspace / "note").write_text("old")

    with pytest.raises(ToolFailed):
        world.effects.write_file("note/x", b"new", world.turn())

    assert [path.name for path in world.workspace.iterdir()] == ["note"]
    assert (world.workspace / "note").read_text() == "old"


def test_effect_is_recorded_with_its_resolved_target_before_it_happens(world: World) -> None:
    (world.workspace / "link").symlink_to("missing")
    turn = world.turn()

    with pytest.raises(ToolFailed):
        world.effects.read_file("link", turn)
    world.effects.write_file("new", b"x", turn)
    world.effects.run_command(("true",), turn, timeout_s=5)

    kinds = [(type(effect), getattr(effect, "path", None)) for effect, _ in world.recorded]
    root = world.workspace.resolve()
    assert kinds == [(ReadFile, root / "missing"), (WriteFile, root / "new"), (RunCommand, None)]


def test_stopped_turn_does_nothing_any_more(world: World) -> None:
    cancel = Cancel()
    cancel.set("by /stop")

    with pytest.raises(Cancelled):
        world.effects.write_file("note", b"x", world.turn(cancel=cancel))
    assert list(world.workspace.iterdir()) == []


def test_command_in_a_folder_that_is_gone_is_refused(world: World) -> None:
    with pytest.raises(ToolFailed, match="no folder"):
        world.effects.run_command(("true",), world.turn(cwd=world.workspace / "gone"), timeout_s=5)


def use(world: World, verb: str, path: str, turn) -> None:
    if verb == "read":
        world.effects.read_file(path, turn)
    else:
        world.effects.write_file(path, b"x", turn)
