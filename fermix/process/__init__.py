"""Running programs: one command to its end, long-running helpers, and what no crash may leave behind."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fermix.native import Limits
    from fermix.process.command import Command, CommandResult, Ending
    from fermix.process.command_host import CommandHost
    from fermix.process.environment import child_environment
    from fermix.process.helper import Helper, HelperSpec
    from fermix.process.ledger import GroupLedger
    from fermix.process.settings import CommandSettings

__all__ = [
    "Command",
    "CommandHost",
    "CommandResult",
    "CommandSettings",
    "Ending",
    "GroupLedger",
    "Helper",
    "HelperSpec",
    "Limits",
    "child_environment",
]

_HOMES = {
    "Command": "fermix.process.command",
    "CommandHost": "fermix.process.command_host",
    "CommandResult": "fermix.process.command",
    "CommandSettings": "fermix.process.settings",
    "Ending": "fermix.process.command",
    "GroupLedger": "fermix.process.ledger",
    "Helper": "fermix.process.helper",
    "HelperSpec": "fermix.process.helper",
    "Limits": "fermix.native",
    "child_environment": "fermix.process.environment",
}


def __getattr__(name: str) -> object:
    # The settings schema imports fermix.process.settings in client processes that must not load
    # gevent, so the names above are fetched at first use.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
