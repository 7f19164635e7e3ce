"""config.toml: every problem named, rubble replaced, a person's work never."""

from __future__ import annotations

import stat
from collections.abc import Callable

import pytest

from fermix.errors import ConfigChanged
from fermix.paths import Home
from fermix.setup.doctor import named_secrets
from fermix.setup.doctor.finding import Finding, State
from fermix.setup.doctor.scene import Scene
from fermix.setup.doctor.settings import look
from tests.setup.doctor.conftest import one

SceneMaker = Callable[..., Scene]
GOOD = "# mine\n[gateway]\nrunning_turns = 8\n\n[http]\nport = 4100\n"


def put(home: Home, raw: str | bytes, backup: str | None = None) -> None:
    home.config.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    home.config.chmod(0o600)
    if backup is not None:
        (home.root / "config.toml.bak").write_text(backup)


def test_good_and_missing_files_are_good(scene: SceneMaker, home: Home) -> None:
    assert [each.state for each in look(scene())] == [State.OK]
    put(home, GOOD)
    assert [each.state for each in look(scene())] == [State.OK]


def test_every_problem_is_a_finding(scene: SceneMaker, home: Home) -> None:
    put(home, '[gateway]\nrunning_turn = 8\nrunning_turns = "many"\n')

    findings = look(scene())

    assert [each.state for each in findings] == [State.FAIL, State.FAIL]
    assert [each.hint for each in findings] == [f"${{EDITOR:-vi}} {home.config}"] * 2
    assert all(each.fix is None for each in findings)


def test_unknown_keys_are_taken_out_by_one_command(scene: SceneMaker, home: Home) -> None:
    """One after the other would not do: what is written must be good as a whole."""
    put(home, "[gatway]\nx = 1\n[gateway]\nrunning_turn = 8\n")

    findings = look(scene())

    assert {each.hint for each in findings} == {"fermix config unset gatway gateway.running_turn"}
    assert len(findings) == 2


def test_contradictions_have_commands_of_their_own(scene: SceneMaker, home: Home) -> None:
    put(home, '[provider]\nname = "mine"\n[providers.mine]\n')

    assert [each.hint for each in look(scene())] == [
        "fermix config set providers.mine.base_url https://HOST/v1",
        "fermix config set providers.mine.model MODEL",
    ]


def test_byte_order_mark_inside_names_file_line_and_command(scene: SceneMaker, home: Home) -> None:
    put(home, b"[gateway]\n\xef\xbb\xbfrunning_turns = 8\n", backup=GOOD)

    finding = one(look(scene()), State.FAIL)

    assert f"{home.config}, line 2" in finding.saw
    assert (finding.hint or "").startswith("sed -i '2s/")
    assert finding.fix is None


@pytest.mark.parametrize(
    "raw",
    [
        GOOD[:25].encode(),
        b"\0" * 60,
        GOOD[:20].encode() + b"\0" * 40,
        bytes(range(256)),
    ],
)
def test_rubble_is_kept_aside_and_the_backup_put_back(scene: SceneMaker, home: Home, raw: bytes) -> None:
    put(home, raw, backup=GOOD)
    assert scene().problems(), "the file must be unreadable for this"

    finding = one(look(scene()), State.FAIL)
    said = repair_once(finding)

    assert home.config.read_text() == GOOD
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600
    (aside,) = home.root.glob("config.toml.broken-*")
    assert aside.read_bytes() == raw and str(aside) in said
    assert [each.state for each in look(scene())] == [State.OK]


def repair_once(finding: Finding) -> str:
    assert finding.fix is not None, finding
    return finding.fix()


@pytest.mark.parametrize(
    "raw", [GOOD + "oops", "[gateway\nrunning_turns = 9\n", "# grüße\n[x".encode("latin-1")]
)
def test_a_persons_slip_is_only_named(scene: SceneMaker, home: Home, raw: str | bytes) -> None:
    put(home, raw, backup=GOOD)

    finding = one(look(scene()), State.FAIL)

    assert finding.fix is None
    assert finding.hint or "UTF-8" in finding.saw


def test_broken_backup_is_never_put_back(scene: SceneMaker, home: Home) -> None:
    put(home, b"\0\0\0\0", backup="[nonsense")

    assert one(look(scene()), State.FAIL).fix is None


def test_restore_leaves_a_file_that_changed_meanwhile(scene: SceneMaker, home: Home) -> None:
    put(home, b"\0\0\0\0", backup=GOOD)
    finding = one(look(scene()), State.FAIL)
    put(home, "# by hand\n")

    assert finding.fix is not None
    with pytest.raises(ConfigChanged):
        finding.fix()
    assert home.config.read_text() == "# by hand\n"


def test_empty_file_beside_a_full_backup_is_named(scene: SceneMaker, home: Home) -> None:
    put(home, "", backup=GOOD)

    finding = one(look(scene()), State.WARN)

    assert finding.hint == "fermix config restore"
    assert finding.fix is None


def test_folder_in_its_place_is_named(scene: SceneMaker, home: Home) -> None:
    home.config.mkdir()

    assert one(look(scene()), State.FAIL).hint == f"mv {home.config} {home.config}.aside"


def test_open_home_is_said_to_hide_the_rest(scene: SceneMaker, home: Home) -> None:
    put(home, "[nonsense]\n")
    home.root.chmod(0o755)

    assert one(look(scene()), State.SKIPPED).hint == f"chmod 700 {home.root}"


def test_missing_secret_is_named_with_the_command_that_stores_it(scene: SceneMaker, home: Home) -> None:
    put(home, '[providers.mine]\nbase_url = "https://h.example/v1"\napi_key = "@secret:mine"\n')

    finding = one(named_secrets.look(scene()), State.FAIL)

    assert "'mine'" in finding.saw
    assert "mine" in (finding.hint or "")
    assert [each.state for each in look(scene())] == [State.OK]


def test_repair_twice_keeps_one_file_aside(scene: SceneMaker, home: Home) -> None:
    for _ in range(2):
        put(home, b"\0\0\0\0", backup=GOOD)
        repair_once(one(look(scene()), State.FAIL))

    assert len(list(home.root.glob("config.toml.broken-*"))) == 1
