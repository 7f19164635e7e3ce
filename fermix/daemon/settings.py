"""What the owner can say about the running daemon."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting


@section("runtime")
@dataclass(frozen=True)
class RuntimeSettings:
    """[runtime] section."""

    drain_s: float = setting(
        30.0, "How long running turns may finish after a stop was asked for.", unit="s", minimum=0.0
    )
    stop_s: float = setting(
        10.0,
        "How long the parts get to stop after that, before they are killed.",
        unit="s",
        minimum=0.1,
    )
    hub_blocked_log_ms: int = setting(
        500, "A hub blocked this long is logged with the stack that blocks it.", unit="ms", minimum=50
    )
    hub_killed_s: float = setting(
        15.0, "A worker whose hub is blocked this long is killed and replaced.", unit="s", minimum=0.5
    )
    lease_wait_s: float = setting(
        5.0,
        "How long a start waits for the last processes of a killed daemon.",
        unit="s",
        minimum=0.0,
        needs_restart=True,
    )
    restarts: int = setting(
        60, "Worker restarts within restart_window_s before pauses are made.", unit="restarts", minimum=1
    )
    restart_window_s: float = setting(
        60.0, "The time in which restarts are counted.", unit="s", minimum=1.0
    )
