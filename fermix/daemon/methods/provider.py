"""The method that asks a provider for real: the one in force, or one a person thinks of taking."""

from __future__ import annotations

from collections.abc import Mapping

from fermix.daemon.methods.access import persons
from fermix.daemon.methods.probe_parts import ProbeParams, ProbeParts
from fermix.ipc.server import Call, Method


class ProviderMethods:
    """Answers `provider.probe`."""

    def __init__(self, parts: ProbeParts) -> None:
        self._parts = parts

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {"provider.probe": persons(ProbeParams, self._probe)}

    def _probe(self, params: ProbeParams, call: Call) -> Mapping[str, object]:
        """Ends when the client hangs up: its greenlet is ended then, and the request with it."""
        from fermix.daemon.methods.probing import Prober  # most daemons are never asked

        return Prober(self._parts).probe(params)
