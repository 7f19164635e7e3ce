"""All routes of the API; the description is made from this table."""

from __future__ import annotations

from fermix.web import health_routes, messages, sessions, turns, uploads
from fermix.web.openapi import with_description
from fermix.web.routes import Route
from fermix.web.v1 import routes as v1

ROUTES: tuple[Route, ...] = with_description(
    (
        *health_routes.ROUTES,
        *messages.ROUTES,
        *turns.ROUTES,
        *sessions.ROUTES,
        *uploads.ROUTES,
        *v1.ROUTES,
    )
)
