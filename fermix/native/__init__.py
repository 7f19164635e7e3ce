"""System calls for processes: signals, subreaper, pidfd, and `spawn` with its monitor."""

from fermix.native.backend import (
    IS_COMPILED,
    NOTICE,
    become_subreaper,
    kill_pgid,
    pidfd_open,
    pidfd_send_signal,
    reap,
    set_dumpable,
    set_parent_death_signal,
)
from fermix.native.spawning import (
    Limits,
    Record,
    RecordKind,
    RecordReader,
    Spawned,
    order_kill,
    order_terminate,
    spawn,
)

__all__ = [
    "IS_COMPILED",
    "NOTICE",
    "Limits",
    "Record",
    "RecordKind",
    "RecordReader",
    "Spawned",
    "become_subreaper",
    "kill_pgid",
    "order_kill",
    "order_terminate",
    "pidfd_open",
    "pidfd_send_signal",
    "reap",
    "set_dumpable",
    "set_parent_death_signal",
    "spawn",
]
