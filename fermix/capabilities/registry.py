"""The one place agents read tools from, under one filter."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fermix.capabilities.tool import Tool
from fermix.errors import ToolDenied, ToolRetry
from fermix.trust import Policy, Standing


class Registry:
    """Tools by name; what a turn sees depends on its standing, asked anew at each call."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._visible: dict[Standing, tuple[Tool, ...]] = {}

    def visible(self, standing: Standing) -> tuple[Tool, ...]:
        """The tools this standing may reach, in the order they were registered."""
        if standing not in self._visible:
            tools = self._tools.values()
            self._visible[standing] = tuple(tool for tool in tools if standing.may_reach(tool.policy))
        return self._visible[standing]

    def reads_only(self, name: str) -> bool:
        """Whether the tool is known and changes nothing, so that it may run beside others."""
        tool = self._tools.get(name)
        return tool is not None and tool.policy is Policy.READ_ONLY

    def reach(self, name: str, standing: Standing) -> Tool:
        """The tool, if this standing may use it now.

        Raises: ToolRetry for an unknown name, ToolDenied for one out of reach.
        """
        tool = self._tools.get(name)
        if tool is None:
            names = [visible.name for visible in self.visible(standing)]
            close = difflib.get_close_matches(name, names, 1)
            guess = f" Did you mean {close[0]!r}?" if close else ""
            raise ToolRetry(f"No tool named {name!r}.{guess} Available: {', '.join(names) or 'none'}.")
        if not standing.may_reach(tool.policy):
            who = standing.trust.name.lower()
            raise ToolDenied(f"{name!r} is a {tool.policy.value} tool; a {who} turn may not use it.")
        return tool
