"""Who is behind a turn, and what classes of tools that lets it reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum


class Trust(IntEnum):
    """How far a source is trusted; only ever narrowed, a missing one is GUEST."""

    DENIED = 0
    GUEST = 1
    OPERATOR = 2


class Policy(StrEnum):
    """What a tool does to the world, declared where the tool is defined."""

    READ_ONLY = "read_only"
    READ_WRITE = "read_write"
    EXEC = "exec"
    NETWORK = "network"
    EXTERNAL_API = "external_api"
    GUI_CONTROL = "gui_control"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a turn may do: decided once from its source, then passed along and only narrowed."""

    trust: Trust = Trust.GUEST
    attended: bool = False
    """A person is behind this very turn."""
    tainted: bool = False
    """The turn has read untrusted content."""

    def narrowed(self, other: Standing) -> Standing:
        """The lesser of both in every respect."""
        return Standing(
            trust=min(self.trust, other.trust),
            attended=self.attended and other.attended,
            tainted=self.tainted or other.tainted,
        )

    def taint(self) -> Standing:
        """The same standing after reading untrusted content."""
        return replace(self, tainted=True)

    def may_reach(self, policy: Policy) -> bool:
        """Whether tools of this class are reachable at all."""
        if self.trust is Trust.DENIED:
            return False
        if self.trust is Trust.GUEST:
            return policy is Policy.READ_ONLY
        return policy is not Policy.GUI_CONTROL or self.attended


OPERATOR_ATTENDED = Standing(Trust.OPERATOR, attended=True)
GUEST_ATTENDED = Standing(Trust.GUEST, attended=True)
