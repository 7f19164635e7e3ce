"""A process of its own that opens a database: `python writing_process.py PATH VERB`, ended by kill -9.

write    writes durably from five greenlets and prints each number once its commit is acknowledged
open     opens, prints `open`, reads until stdin ends, closes
migrate  migrates with the folder named last, prints `done`
"""

import gevent.monkey

gevent.monkey.patch_all()

import itertools  # noqa: E402 - everything else is imported patched
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from fermix.db import Database  # noqa: E402
from fermix.db.migrate import MIGRATIONS  # noqa: E402
from fermix.db.settings import DatabaseSettings  # noqa: E402


def write(database: Database) -> None:
    """Numbers go on where the file ends, so that a killed process can be followed by another."""
    database.write(
        lambda connection: connection.execute_sql("CREATE TABLE IF NOT EXISTS acks (n INTEGER PRIMARY KEY)")
    )
    last = database.read(
        lambda connection: connection.execute_sql("SELECT coalesce(max(n), 0) FROM acks").fetchone()[0]
    )
    numbers = itertools.count(last + 1)

    def one_after_another() -> None:
        for number in numbers:
            database.write(
                lambda connection, number=number: connection.execute_sql(
                    "INSERT INTO acks VALUES (?)", (number,)
                ),
                durable=True,
            )
            os.write(1, b"%d\n" % number)

    gevent.joinall([gevent.spawn(one_after_another) for _ in range(5)], raise_error=True)


def main() -> None:
    """Do the one thing asked for."""
    path, verb = Path(sys.argv[1]), sys.argv[2]
    migrations = Path(sys.argv[3]) if len(sys.argv) > 3 else MIGRATIONS
    database = Database(path, DatabaseSettings(), migrations=migrations)
    database.start()
    if verb == "write":
        write(database)
    elif verb == "open":
        os.write(1, b"open\n")
        sys.stdin.read()
        database.read(lambda connection: connection.execute_sql("SELECT count(*) FROM messages").fetchone())
        database.stop()
    else:
        os.write(1, b"done\n")
        database.stop()


if __name__ == "__main__":
    main()
