"""What the owner can say about the control socket."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting
from fermix.ipc.frames import FRAME_LIMIT_BYTES


@section("control")
@dataclass(frozen=True)
class ControlSettings:
    """[control] section."""

    frame_limit_bytes: int = setting(
        FRAME_LIMIT_BYTES,
        "Longest request the socket takes.",
        unit="bytes",
        minimum=65_536,
        maximum=1 << 30,
    )
    connections: int = setting(
        256, "Connections open at once; more are told to come back.", unit="connections", minimum=4
    )
    request_timeout_s: float = setting(
        10.0, "Longest a request may take to arrive whole once it has begun.", unit="s", minimum=0.1
    )
