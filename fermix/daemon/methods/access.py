"""Which clients of the control socket may call what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fermix.errors import ToolDenied
from fermix.ipc.server import Call, Method
from fermix.trust import OPERATOR_ATTENDED, Standing, Trust

Run = Callable[[Any, Call], Mapping[str, object]]


class NoParams(msgspec.Struct):
    """Nothing to say."""


def standing_of(call: Call) -> Standing:
    """What the client may: everything, unless a turn of ours started it."""
    return call.peer.standing or OPERATOR_ATTENDED


def operators(params: type[msgspec.Struct], run: Run) -> Method:
    """A method that no process of a guest's turn may call."""

    def checked(given: msgspec.Struct, call: Call) -> Mapping[str, object]:
        if standing_of(call).trust is not Trust.OPERATOR:
            raise ToolDenied("A process of a guest's turn may not do this.")
        return run(given, call)

    return Method(params, checked)


def persons(params: type[msgspec.Struct], run: Run) -> Method:
    """A method that no process of any turn may call: only a person decides it."""

    def checked(given: msgspec.Struct, call: Call) -> Mapping[str, object]:
        if call.peer.standing is not None:
            raise ToolDenied("Only a person may do this, not a process that a turn has started.")
        return run(given, call)

    return Method(params, checked)
