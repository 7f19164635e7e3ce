"""The compiled module where it was built, else the fallback, which says that it is one."""

from __future__ import annotations

try:
    from fermix.native._native import (
        become_subreaper,
        kill_pgid,
        pidfd_open,
        pidfd_send_signal,
        reap,
        set_dumpable,
        set_parent_death_signal,
        start_monitor,
    )
except ImportError:
    from fermix.native.fallback import (
        NOTICE as FALLBACK_NOTICE,
    )
    from fermix.native.fallback import (
        become_subreaper,
        kill_pgid,
        pidfd_open,
        pidfd_send_signal,
        reap,
        set_dumpable,
        set_parent_death_signal,
        start_monitor,
    )

    IS_COMPILED = False
    NOTICE: str | None = FALLBACK_NOTICE
    """What is weaker than it should be, for the log and `status`; None when nothing is."""
else:
    IS_COMPILED = True
    NOTICE = None

__all__ = [
    "IS_COMPILED",
    "NOTICE",
    "become_subreaper",
    "kill_pgid",
    "pidfd_open",
    "pidfd_send_signal",
    "reap",
    "set_dumpable",
    "set_parent_death_signal",
    "start_monitor",
]
