"""The `[database]` section of config.toml."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting


@section("database")
@dataclass(frozen=True)
class DatabaseSettings:
    """How memory.db is opened and how long its work may take."""

    journal_mode: str = setting(
        "wal",
        "SQLite's journal; `delete` for a home on a network or shared-folder disk, where wal can corrupt.",
        choices=("wal", "delete"),
        needs_restart=True,
    )
    busy_timeout_ms: int = setting(
        5_000,
        "How long to wait for another process that holds the database.",
        unit="ms",
        minimum=0,
        needs_restart=True,
    )
    start_timeout_s: float = setting(
        300.0,
        "Longest that opening, recovering and migrating may take.",
        unit="s",
        minimum=1,
        needs_restart=True,
    )
    write_timeout_s: float = setting(
        30.0,
        "Longest that one write may wait for its commit.",
        unit="s",
        minimum=0.1,
        needs_restart=True,
    )
    read_timeout_s: float = setting(
        30.0, "Longest that one read may take.", unit="s", minimum=0.1, needs_restart=True
    )
    readers: int = setting(
        4,
        "Threads that read, each with a connection of its own.",
        unit="threads",
        minimum=1,
        maximum=64,
        needs_restart=True,
    )
    batch_limit: int = setting(
        256,
        "Most writes that share one commit.",
        unit="writes",
        minimum=1,
        maximum=10_000,
        needs_restart=True,
    )
    batch_time_ms: int = setting(
        20,
        "Longest that a commit waits for the writes that share it.",
        unit="ms",
        minimum=1,
        needs_restart=True,
    )
    checkpoint_bytes: int = setting(
        4 * 1024 * 1024,
        "Growth of the write-ahead log after which it is copied into the database.",
        unit="bytes",
        minimum=65_536,
        needs_restart=True,
    )
    wal_limit_bytes: int = setting(
        64 * 1024 * 1024,
        "Size of the write-ahead log from which writers wait for readers to shorten it.",
        unit="bytes",
        minimum=65_536,
        needs_restart=True,
    )
