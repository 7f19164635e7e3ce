"""Asks a provider for real: the one in force, or one a person thinks of taking."""

from __future__ import annotations

from collections.abc import Mapping

from fermix.daemon.methods.probe_parts import ProbeParams, ProbeParts
from fermix.errors import SecretMissing, UsageError
from fermix.providers.build import SIGN_INS, spec_of, vendor_of
from fermix.providers.probe import (
    PROBE_S,
    Candidate,
    ProbeResult,
    ProbeStatus,
    probe,
    probe_running,
)
from fermix.providers.settings import ANY_SERVER, LOCAL, VENDOR_NAMES
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline


class Prober:
    """Answers what `provider.probe` asks."""

    def __init__(self, parts: ProbeParts) -> None:
        self._parts = parts

    def probe(self, params: ProbeParams) -> Mapping[str, object]:
        """What the provider says to one small question."""
        deadline = Deadline.after(PROBE_S)
        if params.base_url is not None or params.vendor is not None:
            candidate = self._candidate(params)
        elif params != ProbeParams():
            raise UsageError(
                "A provider is probed by its vendor or base_url; leave all out for the one in force."
            )
        else:
            in_force = self._in_force()
            if in_force is None:
                return self._shown(
                    probe_running(
                        self._parts.provider(), cancel=Cancel(), deadline=deadline, clock=self._parts.clock
                    )
                )
            if isinstance(in_force, ProbeResult):
                return self._shown(in_force)
            candidate = in_force
        return self._shown(probe(candidate, cancel=Cancel(), deadline=deadline, clock=self._parts.clock))

    def _candidate(self, params: ProbeParams) -> Candidate:
        """Raises: UsageError for a vendor that is unknown."""
        key = Secret(params.api_key) if params.api_key else None
        if key is not None:
            self._parts.redactor.add(key)
        vendor = params.vendor or ANY_SERVER
        if vendor not in VENDOR_NAMES:
            raise UsageError(f"No vendor named {vendor[:40]!r}. Available: {', '.join(VENDOR_NAMES)}.")
        return Candidate(
            name=params.name or "The provider",
            vendor=vendor,
            base_url=params.base_url or spec_of(vendor).base_url or "",
            model=params.model,
            preferred=params.preferred,
            key=key,
        )

    def _in_force(self) -> Candidate | ProbeResult | None:
        """The provider of the settings; None when it is the model on this machine, or one signed in to."""
        settings = self._parts.settings()
        name = settings.provider.name
        table = settings.providers.get(name)
        if name == LOCAL or table is None or vendor_of(name, table) in SIGN_INS:
            return None  # what needs more than an address and a key asks for itself
        try:
            key = self._parts.secret(table.api_key) if table.api_key else None
        except SecretMissing as error:
            return ProbeResult(status=ProbeStatus.AUTH, message=error.message, hint=error.hint)
        vendor = vendor_of(name, table)
        return Candidate(
            name=name,
            vendor=vendor,
            base_url=table.base_url or spec_of(vendor).base_url or "",
            model=settings.provider.model or table.model,
            key=key,
            table=table,
        )

    def _shown(self, result: ProbeResult) -> dict[str, object]:
        redact = self._parts.redactor.redact
        return {
            "status": result.status.value,
            "message": redact(result.message),
            "hint": redact(result.hint) if result.hint else None,
            "latency_ms": result.latency_ms,
            "model": result.model,
            "models": [redact(name) for name in result.models],
            "takes_tools": result.takes_tools,
        }
