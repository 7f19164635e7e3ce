"""Running programs: one command to its end, long-running helpers, and what no crash may leave behind."""

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
