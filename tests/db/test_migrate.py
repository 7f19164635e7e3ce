"""Migrations: in order, whole or not at all, and in agreement with every tables.py."""

import importlib
import random
import re
import shutil
import sqlite3
from pathlib import Path

import gevent
import peewee
import pytest

import fermix
from fermix.db import Database, Row
from fermix.db.migrate import MIGRATIONS, find, migrate, version_of
from fermix.db.settings import DatabaseSettings
from fermix.errors import StoreError

PACKAGE = Path(fermix.__file__).parent


@pytest.fixture
def folder(tmp_path):
    """A folder of migrations: 0001 as in fermix, the rest up to the test."""
    made = tmp_path / "migrations"
    made.mkdir()
    first = next(MIGRATIONS.glob("0001_*.sql"))
    (made / first.name).write_text(first.read_text())
    return made


@pytest.fixture
def native(path):
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def rows_of(package_file):
    """The Row classes a tables.py declares."""
    module = importlib.import_module(
        "fermix." + ".".join(package_file.relative_to(PACKAGE).with_suffix("").parts)
    )
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Row) and value is not Row
    ]


TABLES = [row for file in sorted(PACKAGE.glob("**/tables.py")) for row in rows_of(file)]


def shape(native, table):
    """Column by column: name, type, may be null, is key."""
    return {
        name: (kind, not required, bool(key))
        for _, name, kind, required, _, key in native.execute(f"PRAGMA table_info({table})")
    }


def unique_sets(native, table):
    """Which columns are unique together, the primary key left out."""
    return {
        tuple(column for _, _, column in native.execute(f"PRAGMA index_info('{name}')"))
        for _, name, is_unique, origin, _ in native.execute(f"PRAGMA index_list({table})")
        if is_unique and origin != "pk"
    }


@pytest.mark.parametrize("row", TABLES, ids=lambda row: row._meta.table_name)
def test_migrated_table_is_what_its_row_declares(row, native):
    migrate(native, find())
    declared = peewee.SqliteDatabase(":memory:")
    with row.bind_ctx(declared, bind_refs=False, bind_backrefs=False):
        declared.create_tables([row], safe=False)
    table = row._meta.table_name

    assert shape(native, table) == shape(declared.connection(), table)
    assert unique_sets(declared.connection(), table) <= unique_sets(native, table)
    declared.close()


def test_every_migrated_table_has_its_row(native):
    migrate(native, find())
    tables = {
        name
        for (name,) in native.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not name.startswith("sqlite_")
    }

    assert tables == {row._meta.table_name for row in TABLES}


def test_migrations_leave_the_transaction_to_the_program():
    for file in MIGRATIONS.glob("*.sql"):
        words = re.sub(r"--.*", "", file.read_text()).upper()
        found = re.findall(
            r"\b(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|ATTACH|VACUUM|PRAGMA USER_VERSION)\b", words
        )
        assert not found, file.name


def test_each_migration_runs_once_in_order(native, folder):
    (folder / "0002_more.sql").write_text(
        "CREATE TABLE more (n INTEGER) STRICT; INSERT INTO more VALUES (1);"
    )

    first = migrate(native, find(folder))
    second = migrate(native, find(folder))

    assert [migration.number for migration in first] == [1, 2]
    assert second == []
    assert native.execute("SELECT n FROM more").fetchall() == [(1,)]
    assert version_of(native) == 2


def test_failing_migration_leaves_the_schema_before_it(native, folder):
    (folder / "0002_bad.sql").write_text("CREATE TABLE half (n INTEGER); INSERT INTO nowhere VALUES (1);")

    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(native, find(folder))

    assert version_of(native) == 1
    assert shape(native, "half") == {}
    assert not native.in_transaction


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("0003_gap.sql", r"numbered \[1, 3\]"),
        ("0001_twice.sql", r"numbered \[1, 1\]"),
        ("2_short.sql", "not named like"),
        ("0002 space.sql", "not named like"),
    ],
)
def test_numbering_is_one_unbroken_sequence(folder, name, complaint):
    (folder / name).write_text("SELECT 1;")

    with pytest.raises(StoreError, match=complaint):
        find(folder)


def test_folder_without_migrations_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="numbered"):
        find(tmp_path)


def test_kill_during_a_migration_leaves_the_schema_before_or_after(process, folder, path):
    old = Database(path, DatabaseSettings(), migrations=folder)
    old.start()
    old.stop()
    (folder / "0002_long.sql").write_text(
        """
        CREATE TABLE numbers (n INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
        INSERT INTO numbers
            WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k LIMIT 60000)
            SELECT n, hex(randomblob(50)) FROM k;
        CREATE INDEX numbers_text ON numbers (text);
        """
    )
    seeded = random.Random(5)
    versions = set()
    for number in range(12):
        file = path.with_name(f"killed-{number}.db")
        shutil.copy(path, file)
        child = process("migrate", str(folder), at=file)
        with gevent.Timeout(20):
            while not file.with_name(file.name + "-wal").exists() and child.poll() is None:
                gevent.sleep(0.002)
        gevent.sleep(seeded.random() * 0.3)
        child.kill()
        child.wait(10)

        database = Database(file, DatabaseSettings(), migrations=folder)
        found = sqlite3.connect(file)
        version = version_of(found)
        count = len(shape(found, "numbers"))
        found.close()
        versions.add(version)
        assert (version, count) in {(1, 0), (2, 2)}
        database.start()
        assert database.read(lambda c: c.execute_sql("SELECT count(*) FROM numbers").fetchone()) == (60000,)
        database.stop()
    assert versions >= {1}
