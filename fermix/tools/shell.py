"""Runs a shell script on the owner's machine."""

from __future__ import annotations

from fermix.capabilities.cleaning import clean
from fermix.capabilities.context import ToolContext
from fermix.capabilities.tool import tool
from fermix.errors import Cancelled, ToolFailed, ToolRetry
from fermix.process import CommandResult, Ending
from fermix.tasks import sleep
from fermix.trust import Policy

LONGEST_S = 600


@tool(policy=Policy.EXEC)
def shell(ctx: ToolContext, script: str, timeout_s: int = 120) -> str:
    """Run a POSIX shell script in the working folder; output and exit code come back.

    Everything the script started is ended when it ends.

    script: The script, as one would type it.
    timeout_s: Seconds until it is ended, 1 to 600.
    """
    if not script.strip() or "\0" in script:
        raise ToolRetry("script is empty or holds a NUL byte; expected shell commands.")
    if not 1 <= timeout_s <= LONGEST_S:
        raise ToolRetry(f"timeout_s is {timeout_s}; expected 1 to {LONGEST_S}.")
    result = ctx.effects.run_command(
        ("/bin/sh", "-c", script), ctx.turn, timeout_s=timeout_s, on_output=ctx.progress
    )
    if result.ended is Ending.CANCELLED:
        raise Cancelled(f"Stopped: {ctx.turn.cancel.reason}.")
    if result.ended is Ending.FAILED_TO_START:
        raise ToolFailed(result.output)
    return describe(result)


def describe(result: CommandResult) -> str:
    """A command's end in words for the model: output first, then how it ended."""
    output = clean(result.output, lambda: sleep(0))
    body = output if output.endswith("\n") or not output else output + "\n"
    return f"{body}[{_ending(result)}]"


def _ending(result: CommandResult) -> str:
    seconds = f"{result.duration_ms / 1000:.1f} s"
    if result.ended is Ending.TIMEOUT:
        return f"ended by timeout after {seconds}; everything it started was ended too"
    if result.ended is Ending.OUTPUT_CAP:
        return f"ended after {seconds} because it printed too much; the output above is cut"
    if result.ended is Ending.STALLED:
        return f"ended after {seconds} because nobody could take its output any more"
    if result.ended is Ending.LOST:
        return f"lost after {seconds}: what watched over it was killed, how it ended is unknown"
    if result.signal is not None:
        return f"ended by signal {result.signal} after {seconds}"
    return f"exit code {result.exit_code}, {seconds}"
