"""The Flask application: every request is let in, matched, decoded, answered or refused in one place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from fermix.auth.tokens import Grant
from fermix.clock import SystemClock
from fermix.errors import FermixError, NotReady, OwnerError, ToolDenied
from fermix.web import link as links
from fermix.web.admission import Doorkeeper, check_names, check_no_token_in, check_way, token_missing
from fermix.web.bodies import Body, check_json, decode, length_of
from fermix.web.link import Link
from fermix.web.peers import Peer, peer_of
from fermix.web.port import DaemonControl
from fermix.web.refusals import Refused, body_of, headers_of, status_of
from fermix.web.routes import JSON, Answer, Call, Route, Stream, find_route, segments_of
from fermix.web.settings import HttpSettings
from fermix.web.slots import Slots
from fermix.web.table import ROUTES

log = logging.getLogger(__name__)

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
MOST_PARAMETERS = 32

Environ = dict[str, Any]  # WSGI's own type


def build_app(
    control: DaemonControl, settings: Callable[[], HttpSettings], routes: Sequence[Route] = ROUTES
) -> Flask:
    """A WSGI application that asks `control` and nothing else; `settings` gives those that count now."""
    app = Flask("fermix.web", static_folder=None, template_folder=None)
    desk = _FrontDesk(control, settings, routes)

    @app.before_request
    def answer() -> Response:
        return desk.answer(request.environ)

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> Response:
        # Flask itself could not make sense of the request; ours never gets that far.
        return _refusal(
            Refused(error.code or 400, "request_invalid", str(error.description)[:300]), body_of
        )

    return app


class _FrontDesk:
    """Takes one WSGI environment after the other."""

    def __init__(
        self, control: DaemonControl, settings: Callable[[], HttpSettings], routes: Sequence[Route]
    ) -> None:
        self._control = control
        self._settings = settings
        self._routes = routes
        self._slots = Slots()
        self._doorkeeper = Doorkeeper(SystemClock())

    def answer(self, environ: Environ) -> Response:
        route: Route | None = None
        try:
            settings, headers = self._settings(), _headers(environ)
            raw_uri = str(environ.get("RAW_URI") or environ.get("REQUEST_URI") or "/")
            link = environ.get(links.KEY) or Link()
            peer = peer_of(str(environ.get("REMOTE_ADDR", "")), headers, settings.proxies)
            check_way(peer, settings)
            check_names(headers, settings, link.own_address())
            check_no_token_in(raw_uri, headers.get("cookie", ""))
            route, path = self._route(environ["REQUEST_METHOD"], raw_uri)
            call = self._admit(route, path, environ, headers, settings, link, peer)
            return _response(route.answer(call))
        except FermixError as error:
            return _refusal(error, self._shape(route, environ))
        except (
            Exception
        ):  # the boundary of a request: a fault of one must not end its connection in silence
            log.exception("A request to %s failed", route.path if route else "no route")
            broken = OwnerError("fermix failed inside; its log says why.", hint="fermix logs")
            return _refusal(broken, self._shape(route, environ))

    def _shape(self, route: Route | None, environ: Environ) -> Callable[[FermixError], object]:
        """How a refusal is told: as the route has it, or those beside it when there is none."""
        beside = "/" + str(environ.get("PATH_INFO", "")).lstrip("/").partition("/")[0] + "/"
        candidates = (each for each in self._routes if f"{each.path}/".startswith(beside))
        found = route or next(candidates, None)
        return found.shape_error if found is not None else body_of

    def _route(self, method: str, raw_uri: str) -> tuple[Route, Mapping[str, str]]:
        segments = segments_of(raw_uri.partition("?")[0].partition("#")[0])
        found = find_route(self._routes, method, segments)
        if not isinstance(found, frozenset):
            return found
        if not found:
            raise Refused(404, "path_unknown", f"Nothing is at '/{'/'.join(segments)[:120]}'.")
        listed = ", ".join(sorted(found))
        raise Refused(
            405, "method_refused", f"No {method[:20]} here; expected {listed}.", headers={"Allow": listed}
        )

    def _admit(
        self,
        route: Route,
        path: Mapping[str, str],
        environ: Environ,
        headers: Mapping[str, str],
        settings: HttpSettings,
        link: Link,
        peer: Peer,
    ) -> Call:
        """The request, checked in an order in which a stranger learns and costs least."""
        grant = self._identify(route, headers, settings, peer)
        if route.needs_token and grant is None:
            raise token_missing()
        if grant is not None:
            self._check_source(link)
        query = _query(route, str(environ.get("QUERY_STRING", "")))
        takes_body = route.request is not None or route.takes_bytes
        if route.request is not None:
            check_json(headers.get("content-type", ""))
        raw = Body(
            environ["wsgi.input"],
            length=length_of(environ) if takes_body else 0,
            limit_bytes=route.body_limit(settings),
            deadline=link.deadline,
        )
        body = decode(raw.whole(), route.request) if route.request is not None else None
        return Call(
            control=self._control,
            settings=settings,
            path=path,
            query=query,
            body=body,
            raw=raw,
            headers=headers,
            grant=grant,
            link=link,
            slots=self._slots,
        )

    def _check_source(self, link: Link) -> None:
        """Raises: ToolDenied for a process of a turn: it may have read the api-token, and would come back
        as the owner in person."""
        try:
            ends = link.ends()
            is_of_a_turn = ends is not None and self._control.is_of_a_turn(*ends)
        except OSError:  # the client reset the connection, and nobody can tell any more who it was
            is_of_a_turn = True
        if is_of_a_turn:
            raise ToolDenied("A process that a turn has started may not use a token; it has the socket.")

    def _identify(
        self, route: Route, headers: Mapping[str, str], settings: HttpSettings, peer: Peer
    ) -> Grant | None:
        """Whose token came along; None when none did, or none is needed and none can be checked yet."""
        if not route.needs_token and "authorization" not in headers:
            return None
        try:
            tokens = self._control.tokens()
        except NotReady:
            if route.needs_token:
                raise
            return None
        return self._doorkeeper.identify(headers.get("authorization"), peer, tokens, settings)


def _headers(environ: Environ) -> dict[str, str]:
    """The request's headers by lower-case name."""
    headers = {
        name[5:].replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    headers["content-type"] = str(environ.get("CONTENT_TYPE", ""))
    return headers


def _query(route: Route, text: str) -> msgspec.Struct:
    """The query's parameters as the route declares them. Raises: Refused."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError as error:
        raise Refused(
            400, "query_invalid", f"The query is not UTF-8, or has over {MOST_PARAMETERS} parameters."
        ) from error
    given = dict(pairs)
    if len(given) != len(pairs):
        raise Refused(400, "query_invalid", "A query parameter is given twice.")
    try:
        return msgspec.convert(given, type=route.query, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(400, "query_invalid", f"The query is not as expected: {str(error)[:300]}.") from error


def _response(answer: object) -> Response:
    if isinstance(answer, Stream):
        headers = {**SECURITY_HEADERS, **answer.headers}
        return Response(answer, 200, headers=headers, content_type=answer.media_type)
    if not isinstance(answer, Answer):
        answer = Answer(body=answer)
    raw = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
    headers = {**SECURITY_HEADERS, **answer.headers}
    return Response(raw, answer.status, headers=headers, content_type=answer.media_type)


def _refusal(error: FermixError, shape: Callable[[FermixError], object]) -> Response:
    headers = {**SECURITY_HEADERS, **headers_of(error)}
    raw = msgspec.json.encode(shape(error))
    return Response(raw, status_of(error), headers=headers, content_type=JSON)
