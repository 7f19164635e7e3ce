"""What the owner can say about the commands the agent runs."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting
from fermix.native import Limits

GIB = 1024 * 1024 * 1024


@section("commands")
@dataclass(frozen=True)
class CommandSettings:
    """[commands] section."""

    grace_s: float = setting(
        2.0, "Time between asking a command to end and killing it.", unit="s", minimum=0.0, maximum=60.0
    )
    reader_timeout_s: float = setting(
        10.0,
        "Longest a watcher may take for a piece of output before the command is ended.",
        unit="s",
        minimum=0.1,
    )
    memory_bytes: int = setting(
        4 * GIB, "Memory each process of a command may allocate; 0 is no limit.", unit="bytes", minimum=0
    )
    cpu_s: int = setting(
        3600, "Processor time each process of a command may use; 0 is no limit.", unit="s", minimum=0
    )
    file_size_bytes: int = setting(
        16 * GIB, "Largest file a command may write; 0 is no limit.", unit="bytes", minimum=0
    )
    open_files: int = setting(
        4096, "Files each process of a command may have open; 0 is no limit.", unit="files", minimum=0
    )
    environment: tuple[str, ...] = setting(
        (
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "LANG",
            "LANGUAGE",
            "LC_*",
            "TZ",
            "TERM",
            "TMPDIR",
            "LD_LIBRARY_PATH",
        ),
        "Variables a command may see of the daemon's own; a name may end in *.",
    )

    def limits(self) -> Limits:
        """The limits of a command started for the agent."""
        return Limits(
            memory_bytes=self.memory_bytes or None,
            cpu_s=self.cpu_s or None,
            file_size_bytes=self.file_size_bytes or None,
            open_files=self.open_files or None,
        )
