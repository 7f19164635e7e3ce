"""`/health`: whether it lives, whether it takes messages, and for whoever shows a token everything else."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from fermix.telemetry.lines import redacted
from fermix.web.health import Check, DaemonState, HealthReport, PartHealth
from fermix.web.routes import Answer, Call, Route


class Status(msgspec.Struct):
    """How it is, in one word."""

    status: str


class Health(msgspec.Struct, omit_defaults=True):
    """How it is; all but the first only for whoever shows a token."""

    status: DaemonState
    version: str | msgspec.UnsetType = msgspec.UNSET
    uptime_ms: int | msgspec.UnsetType = msgspec.UNSET
    pid: int | msgspec.UnsetType = msgspec.UNSET
    children: tuple[PartHealth, ...] | msgspec.UnsetType = msgspec.UNSET
    checks: tuple[Check, ...] | msgspec.UnsetType = msgspec.UNSET


def _live(call: Call) -> object:
    return Status("live")


def _ready(call: Call) -> object:
    report = call.health()
    return Answer(body=Status(report.status), status=_code(report))


def _health(call: Call) -> object:
    report = call.health()
    if call.grant is None:
        return Answer(body=Health(report.status), status=_code(report))
    told = Health(
        report.status, report.version, report.uptime_ms, report.pid, _parts(report), report.checks
    )
    return Answer(body=told, status=_code(report))


def _code(report: HealthReport) -> int:
    return 200 if report.is_ready else 503


def _parts(report: HealthReport) -> tuple[PartHealth, ...]:
    """A part's last error may quote what it was working with."""
    return tuple(
        replace(part, last_error=part.last_error and redacted(part.last_error)) for part in report.children
    )


ROUTES = tuple(
    Route(
        method=method,
        path=path,
        summary=summary,
        answer=answer,
        response=response,
        errors=(503,),
        needs_token=False,
        tag="health",
    )
    for path, summary, answer, response in (
        ("/health/live", "Whether the process answers at all.", _live, Status),
        ("/health/ready", "Whether messages are taken in now.", _ready, Status),
        ("/health", "The state; every part and check for whoever shows a token.", _health, Health),
    )
    for method in ("GET", "HEAD")
)
