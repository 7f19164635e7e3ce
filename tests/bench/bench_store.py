"""The store under load: group commits of many greenlets, the hub's longest gap, durable accepts, reads."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gevent

from fermix.clock import SystemClock
from fermix.conversations import ConversationStore
from fermix.db import Connection, Database
from fermix.db.settings import DatabaseSettings
from fermix.ids import new_id
from fermix.messages import ConversationKey, UserMessage
from tests.bench.figure import Figure

GREENLETS = 50
WRITES_EACH = 300
BODY = "x" * 500


def run() -> list[Figure]:
    """All figures of the store, on a disk of the machine's temporary folder."""
    with tempfile.TemporaryDirectory(prefix="fermix-bench-") as folder:
        database = Database(Path(folder) / "memory.db", DatabaseSettings())
        database.start()
        try:
            return [*_group_commit(database), *_accepts(database), *_history(database)]
        finally:
            database.stop()


def _insert(connection: Connection) -> None:
    now_ms = time.time_ns() // 1_000_000
    name = new_id(now_ms)
    row = (name, "bench", name, "chat", "", "owner", 2, 1, BODY, "received", 0, name, now_ms, now_ms, None)
    connection.native.execute(f"INSERT INTO inbox VALUES ({', '.join('?' * len(row))})", row)


def _group_commit(database: Database) -> list[Figure]:
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
    return [
        Figure("store: durable writes, 50 greenlets", len(took_ms) / seconds, "1/s", ">= 10000 1/s"),
        Figure("store: durable write, 50 greenlets, p50", _percentile(took_ms, 50), "ms", "<= 3 ms"),
        Figure("store: durable write, 50 greenlets, p99", _percentile(took_ms, 99), "ms", "<= 15 ms"),
        Figure("store: longest gap of the hub meanwhile", gap_ms, "ms", "<= 50 ms"),
    ]


def _accepts(database: Database) -> list[Figure]:
    """200 durable accepts a second, each started on time whether or not the last one is done."""
    took_ms: list[float] = []
    accepts = []
    for _ in range(600):
        accepts.append(
            gevent.spawn(lambda: took_ms.append(_took_ms(lambda: database.write(_insert, durable=True))))
        )
        gevent.sleep(1 / 200)
    gevent.joinall(accepts, raise_error=True)
    return [
        Figure("store: durable accept at 200/s, p50", _percentile(took_ms, 50), "ms", "<= 3 ms"),
        Figure("store: durable accept at 200/s, p99", _percentile(took_ms, 99), "ms", "<= 20 ms"),
    ]


def _history(database: Database) -> list[Figure]:
    store = ConversationStore(database, SystemClock())
    conversation = store.open(ConversationKey("bench", "chat"))
    words = [UserMessage(BODY) for _ in range(1000)]
    database.write(lambda connection: store.append(connection, conversation.id, "turn", words))
    appends_ms = [
        _took_ms(
            lambda: database.write(
                lambda connection: store.append(connection, conversation.id, "turn", words[:1]),
                durable=True,
            )
        )
        for _ in range(200)
    ]
    reads_ms = [_took_ms(lambda: store.recent(conversation.id, 200)) for _ in range(100)]
    return [
        Figure("store: one durable step of a turn, p50", _percentile(appends_ms, 50), "ms", "<= 2 ms"),
        Figure("store: history of 200 messages loaded, p50", _percentile(reads_ms, 50), "ms", "<= 15 ms"),
    ]


def _took_ms(work: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    work()
    return (time.perf_counter() - begun_s) * 1000


def _percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
