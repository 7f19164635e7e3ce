"""The method that asks a provider for real: the one in force, or one a person thinks of taking."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fermix.clock import Clock
from fermix.daemon.methods.access import persons
from fermix.daemon.methods.probe_params import ProbeParams
from fermix.daemon.sections import Settings
from fermix.ipc.server import Call, Method
from fermix.providers.port import Provider
from fermix.secret import Secret
from fermix.secrets import Redactor


class ProviderMethods:
    """Answers `provider.probe`."""

    def __init__(
        self,
        *,
        provider: Callable[[], Provider],
        settings: Callable[[], Settings],
        secret: Callable[[str], Secret],
        redactor: Redactor,
        clock: Clock,
    ) -> None:
        """`provider` and `settings` give those in force; `secret` resolves `@secret:NAME`."""
        self._provider = provider
        self._settings = settings
        self._secret = secret
        self._redactor = redactor
        self._clock = clock

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {"provider.probe": persons(ProbeParams, self._probe)}

    def _probe(self, params: ProbeParams, call: Call) -> Mapping[str, object]:
        """Ends when the client hangs up: its greenlet is ended then, and the request with it."""
        from fermix.daemon.methods.probing import Prober  # most daemons are never asked

        prober = Prober(
            provider=self._provider,
            settings=self._settings,
            secret=self._secret,
            redactor=self._redactor,
            clock=self._clock,
        )
        return prober.probe(params)
