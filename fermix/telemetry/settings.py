"""What the owner can say about the log."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting


@section("logs")
@dataclass(frozen=True)
class LogSettings:
    """[logs] section."""

    level: str = setting(
        "info", "Least important lines that are written.", choices=("debug", "info", "warning", "error")
    )
    size_bytes: int = setting(
        10_000_000,
        "Size at which a log file is put aside and a new one begun.",
        unit="bytes",
        minimum=10_000,
    )
    files: int = setting(
        5, "Log files kept, the present one included.", unit="files", minimum=1, maximum=100
    )
