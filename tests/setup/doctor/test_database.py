"""The database as doctor sees it, and that looking changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from fermix.db import migrate
from fermix.ids import new_id
from fermix.paths import Home
from fermix.setup.doctor import clock
from fermix.setup.doctor.database import look
from fermix.setup.doctor.finding import State
from fermix.setup.doctor.scene import Scene, Wanted
from tests.setup.doctor.conftest import NOW_MS, make_database, one

SceneMaker = Callable[..., Scene]
DAY_MS = 86_400_000


def test_intact_database_is_good_and_left_as_it_is(scene: SceneMaker, home: Home) -> None:
    make_database(home)
    before = home.database.read_bytes()

    findings = look(scene())

    assert [each.state for each in findings] == [State.OK]
    assert "intact" in findings[0].saw
    assert home.database.read_bytes() == before
    assert sorted(path.name for path in home.root.glob("memory.db*")) == ["memory.db"]


def test_home_without_a_database_gets_none(scene: SceneMaker, home: Home) -> None:
    assert [each.state for each in look(scene())] == [State.SKIPPED]
    assert [each.state for each in clock.look(scene())] == [State.OK]
    assert list(home.root.glob("memory.db*")) == []


def test_database_a_crash_left_open_is_read_with_its_log(scene: SceneMaker, home: Home) -> None:
    make_database(home)
    writer = sqlite3.connect(home.database, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA user_version = 999")

    finding = one(look(scene()), State.FAIL)
    writer.close()

    assert "schema 999" in finding.saw and "newer" in finding.saw


@pytest.mark.parametrize("where", [0, 40, 8192])
def test_damage_is_named_with_the_way_out(scene: SceneMaker, home: Home, where: int) -> None:
    make_database(home)
    with home.database.open("r+b") as file:
        file.seek(where)
        file.write(b"\xa5" * 8192)

    finding = one(look(scene()), State.FAIL)

    assert "damaged" in finding.saw
    assert "mv memory.db* damaged/" in (finding.hint or "")
    assert finding.fix is None


def test_lost_table_is_damage(scene: SceneMaker, home: Home) -> None:
    make_database(home)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        connection.execute("DROP TABLE outbox")

    assert "'outbox' is gone" in one(look(scene()), State.FAIL).saw


def test_older_schema_is_good(scene: SceneMaker, home: Home) -> None:
    make_database(home)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 0")

    assert f"schema 0 of {len(migrate.find())}" in one(look(scene()), State.OK).saw


def test_long_write_ahead_log_is_named(scene: SceneMaker, home: Home) -> None:
    make_database(home)
    (home.root / "memory.db-wal").write_bytes(b"\0" * 5000)

    finding = one(look(scene(wanted=lambda: Wanted(wal_limit_bytes=1000))), State.WARN)

    assert finding.hint == "fermix start"


def test_log_without_its_database_is_named(scene: SceneMaker, home: Home) -> None:
    (home.root / "memory.db-wal").write_bytes(b"x")

    assert "memory.db-wal" in one(look(scene()), State.FAIL).saw


def test_folder_in_its_place_is_named(scene: SceneMaker, home: Home) -> None:
    home.database.mkdir()

    assert one(look(scene()), State.FAIL).hint == f"mv {home.database} {home.database}.aside"


def test_clock_behind_the_newest_row_is_named(scene: SceneMaker, home: Home) -> None:
    make_database(home)
    columns = "id, channel, platform_id, chat_id, thread, sender_id, trust, attended, body, state, attempts"
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        connection.execute(
            f"INSERT INTO inbox ({columns}, turn_id, received_ms, updated_ms) "
            "VALUES (?, 'local', 'p', 'c', '', 's', 1, 1, '{}', 'committed', 1, 't', 0, 0)",
            (new_id(NOW_MS + DAY_MS),),
        )

    finding = one(clock.look(scene()), State.FAIL)

    assert str(home.database) in finding.saw
    assert finding.hint == clock.HINT
    assert one(clock.look(scene(now_ms=NOW_MS + DAY_MS)), State.OK)


def test_clock_behind_the_newest_line_of_the_log_is_named(scene: SceneMaker, home: Home) -> None:
    home.log.write_text(
        "2026-11-01T10:00:00.000Z INFO    x [1] [-] a\n2031-01-05T10:00:00.123Z INFO    x [1] [-] b\nrest\n"
    )

    assert "2031-01-05 10:00 UTC" in one(clock.look(scene()), State.FAIL).saw


@pytest.mark.parametrize("now_ms", [0, 1_500_000_000_000, 4_000_000_000_000])
def test_time_that_cannot_be_is_named(scene: SceneMaker, now_ms: int) -> None:
    assert one(clock.look(scene(now_ms=now_ms)), State.FAIL).hint == clock.HINT
