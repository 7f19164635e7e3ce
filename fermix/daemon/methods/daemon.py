"""Methods about the daemon itself: how it is, its settings, and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from fermix.daemon.methods.access import NoParams, operators, persons
from fermix.daemon.reload import Outcome
from fermix.ipc.server import Call, Method


class StopParams(msgspec.Struct):
    """`stop`: `only_private` leaves a full daemon alone."""

    only_private: bool = False


class DaemonMethods:
    """Answers them from the runtime."""

    def __init__(
        self,
        *,
        status: Callable[[], Mapping[str, object]],
        stop: Callable[[bool], bool],
        reload: Callable[[], Outcome],
    ) -> None:
        """`stop(only_private)` begins the daemon's end and says whether it did."""
        self._status = status
        self._stop = stop
        self._reload = reload

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {
            "status": Method(NoParams, lambda params, call: self._status()),
            "reload": persons(NoParams, lambda params, call: self._reload().facts()),
            "stop": operators(StopParams, self._stop_daemon),
        }

    def _stop_daemon(self, params: StopParams, call: Call) -> Mapping[str, object]:
        return {"stopping": self._stop(params.only_private)}
