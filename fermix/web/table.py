"""All routes of the API; the description is made from this table."""

from __future__ import annotations

from fermix.web import health_routes, messages, sessions, turns, uploads
from fermix.web.routes import Route

ROUTES: tuple[Route, ...] = (
    *health_routes.ROUTES,
    *messages.ROUTES,
    *turns.ROUTES,
    *sessions.ROUTES,
    *uploads.ROUTES,
)
