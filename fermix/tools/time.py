"""Tells the time."""

from __future__ import annotations

from datetime import UTC, datetime

from fermix.capabilities.context import ToolContext
from fermix.capabilities.tool import tool
from fermix.trust import Policy


@tool(policy=Policy.READ_ONLY)
def current_time(ctx: ToolContext) -> str:
    """The date and time now, in the owner's zone and in UTC."""
    now = datetime.fromtimestamp(ctx.clock.now_ms() / 1000, UTC)
    local = now.astimezone()
    return f"{local:%A, %Y-%m-%d %H:%M:%S %z} ({local.tzname()}); UTC {now:%Y-%m-%dT%H:%M:%SZ}"
