"""The Flask application: health for now; every request's Host and Origin are checked first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from fermix.telemetry.lines import redacted
from fermix.web.health import HealthReport
from fermix.web.port import DaemonControl
from fermix.web.settings import HttpSettings

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def build_app(control: DaemonControl, settings: Callable[[], HttpSettings]) -> Flask:
    """A WSGI application that asks `control` and nothing else; `settings` gives those that count now."""
    app = Flask("fermix.web", static_folder=None, template_folder=None)

    @app.before_request
    def check() -> Response | None:
        present = settings()
        return _refusal(_names(present), present.body_limit_bytes)

    @app.get("/health/live")
    def live() -> Response:
        return jsonify(status="live")

    @app.get("/health/ready")
    def ready() -> Response:
        report = control.health()
        return _answer({"status": report.status}, 200 if report.is_ready else 503)

    @app.get("/health")
    def health() -> Response:
        report = control.health()
        return _answer(_shown(report), 200 if report.is_ready else 503)

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> Response:
        return _error(error.code or 500, (error.name or "error").lower().replace(" ", "_"), error.name)

    return app


def _names(settings: HttpSettings) -> frozenset[str]:
    """The hosts that requests and pages may name."""
    return _LOOPBACK_NAMES | {settings.host.lower()} | {name.lower() for name in settings.names}


def _refusal(names: frozenset[str], body_limit_bytes: int) -> Response | None:
    """The answer to a request that may not be served; None when it may.

    A page of another site can reach loopback through DNS rebinding or plain cross-site requests:
    the first shows in Host, the second in Origin.
    """
    host = _host_name("//" + request.headers.get("Host", ""))
    if host not in names:
        return _error(403, "host_refused", f"No host named {host!r} here; expected {_listed(names)}.")
    origin = request.headers.get("Origin")
    if origin is not None and _host_name(origin) not in names:
        return _error(403, "origin_refused", "Requests from pages of other sites are refused.")
    if (request.content_length or 0) > body_limit_bytes:
        return _error(413, "body_too_large", f"The body is longer than {body_limit_bytes} bytes.")
    return None


def _host_name(address: str) -> str:
    """The name in a URL or `//host:port`; empty when it has none or cannot be read."""
    try:
        return (urlsplit(address).hostname or "")[:253]
    except ValueError:
        return ""


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _shown(report: HealthReport) -> dict[str, Any]:
    """The report as JSON; a part's last error may quote what it was working with."""
    parts = [
        replace(part, last_error=part.last_error and redacted(part.last_error)) for part in report.children
    ]
    return asdict(replace(report, children=tuple(parts)))


def _answer(body: dict[str, Any], status: int) -> Response:
    response = jsonify(body)
    response.status_code = status
    response.headers["Cache-Control"] = "no-store"
    return response


def _error(status: int, code: str, message: str | None) -> Response:
    return _answer({"error": {"code": code, "message": message}}, status)
