"""The store under load: group commits of many greenlets, the hub's longest gap, durable accepts, reads."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent

from fermix.clock import SystemClock
from fermix.conversations import ConversationStore
from fermix.db import Connection, Database
from fermix.db.settings import DatabaseSettings
from fermix.ids import new_id
from fermix.messages import ConversationKey, UserMessage
from tests.bench import Figure, median_ms, percentile

GREENLETS = 50
WRITES_EACH = 300
BODY = "x" * 500


def measure() -> Iterator[Figure]:
    """Every figure of the store, on the disk of the machine's temporary folder."""
    with tempfile.TemporaryDirectory(prefix="fermix-bench-") as folder:
        database = Database(Path(folder) / "memory.db", DatabaseSettings())
        database.start()
        try:
            yield from _group_commit(database)
            yield from _accepts(database)
            yield from _history(database)
        finally:
            database.stop()


def _insert(connection: Connection) -> None:
    now_ms = time.time_ns() // 1_000_000
    name = new_id(now_ms)
    row = (name, "bench", name, "chat", "", "owner", 2, 1, BODY, "received", 0, name, now_ms, now_ms, None)
    connection.native.execute(f"INSERT INTO inbox VALUES ({', '.join('?' * len(row))})", row)


def _group_commit(database: Database) -> Iterator[Figure]:
    took_ms: list[float] = []
    gap_ms = 0.0
    is_over = False

    def watch_hub() -> None:
        nonlocal gap_ms
        last_s = time.perf_counter()
        while not is_over:
            gevent.sleep(0.001)
            now_s = time.perf_counter()
            gap_ms = max(gap_ms, (now_s - last_s) * 1000 - 1)
            last_s = now_s

    def writer() -> None:
        for _ in range(WRITES_EACH):
            took_ms.append(_took_ms(lambda: database.write(_insert, durable=True)))

    watching = gevent.spawn(watch_hub)
    begun_s = time.perf_counter()
    gevent.joinall([gevent.spawn(writer) for _ in range(GREENLETS)], raise_error=True)
    seconds = time.perf_counter() - begun_s
    is_over = True
    watching.join()
    yield Figure("durable write, 50 greenlets, time per write", seconds * 1000 / len(took_ms), 0.1, "ms")
    yield Figure("durable write, 50 greenlets, p50", percentile(took_ms, 0.5), 3, "ms")
    yield Figure("durable write, 50 greenlets, p99", percentile(took_ms, 0.99), 15, "ms")
    yield Figure("longest gap of the hub meanwhile", gap_ms, 50, "ms")


def _accepts(database: Database) -> Iterator[Figure]:
    """200 durable accepts a second, each started on time whether or not the last one is done."""
    took_ms: list[float] = []
    accepts = []
    for _ in range(600):
        accepts.append(
            gevent.spawn(lambda: took_ms.append(_took_ms(lambda: database.write(_insert, durable=True))))
        )
        gevent.sleep(1 / 200)
    gevent.joinall(accepts, raise_error=True)
    yield Figure("durable accept at 200/s, p50", percentile(took_ms, 0.5), 3, "ms")
    yield Figure("durable accept at 200/s, p99", percentile(took_ms, 0.99), 20, "ms")


def _history(database: Database) -> Iterator[Figure]:
    store = ConversationStore(database, SystemClock())
    conversation = store.open(ConversationKey("bench", "chat"))
    words = [UserMessage(BODY) for _ in range(1000)]
    database.write(lambda connection: store.append(connection, conversation.id, "turn", words))

    def step() -> None:
        database.write(lambda c: store.append(c, conversation.id, "turn", words[:1]), durable=True)

    yield Figure("one durable step of a turn", median_ms(step, runs=200), 2, "ms")
    load_ms = median_ms(lambda: store.recent(conversation.id, 200), runs=100)
    yield Figure("history of 200 messages loaded", load_ms, 15, "ms")


def _took_ms(work: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    work()
    return (time.perf_counter() - begun_s) * 1000
