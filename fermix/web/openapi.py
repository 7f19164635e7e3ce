"""The description of the API, made from the table that serves it.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from fermix import __version__
from fermix.web.refusals import RETRY_S, ErrorBody
from fermix.web.routes import BYTES, EVENTS, JSON, Answer, Call, NoQuery, Route
from fermix.web.schema import SESSION_NAME, ULID, WORDS_PATTERN

Described = dict[str, Any]  # a piece of an OpenAPI document

PATH = "/openapi.json"
SCHEME = "token"
EVERYWHERE = (400, 403, 429, 500)
"""Refusals any request may meet."""
UNREAD = (414, 417, 431)
"""Likewise, before it is known what is asked for: these have one shape for all."""
REASONS = {
    400: "The request is not as expected.",
    401: "No token, or a wrong one.",
    403: "Not from here: the Host or Origin is not one of this server's, or the token may not.",
    404: "There is no such thing.",
    405: "The path has no such method.",
    408: "The request did not come in time.",
    409: "It contradicts an earlier request, or what goes on just now.",
    411: "The request has no body, or one of unknown length.",
    413: "The body is too long.",
    414: "The URL is too long.",
    415: "The body is not of the expected kind.",
    417: "The header Expect asks for something unknown.",
    429: "Too much at once; Retry-After says when to come again.",
    431: "The headers are too long, or too many.",
    500: "fermix failed inside; its log says why.",
    502: "The turn did not come to an answer.",
    503: "Not now: fermix starts, stops or cannot store anything; Retry-After says when to come again.",
}
PATH_SCHEMAS = {"turn_id": ULID, "name": SESSION_NAME}
PATH_EXAMPLES = {"turn_id": "01J9ZK3V5T8Q2W4E6R7Y9A1B3C", "name": "main", "model": "fermix"}
EXAMPLES: dict[str, object] = {
    "Message": {"text": "What is on my disk?", "session": "main"},
    "ChatRequest": {"model": "fermix", "messages": [{"role": "user", "content": "Hello"}]},
}
EVENT_EXAMPLES = {
    "/message": 'id: 2\nevent: text_delta\ndata: {"text":"Hello"}\n\n',
    "/turns/{turn_id}/events": 'id: 2\nevent: text_delta\ndata: {"text":"Hello"}\n\n',
    "/v1/chat/completions": 'data: {"object":"chat.completion.chunk","choices":[…]}\n\ndata: [DONE]\n\n',
}
RULES: dict[str, Described] = {
    "Message": {
        "anyOf": [
            {"properties": {"text": {"pattern": WORDS_PATTERN}}},
            {"properties": {"attachments": {"minItems": 1}}, "required": ["attachments"]},
        ]
    },
    "Change": {"minProperties": 1},
}
"""What is true of a whole body, beyond its single fields."""
EVENT: Described = {
    "type": "object",
    "description": "One event; a stream has any number of them.",
    "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
ABOUT = (
    "What the owner's programs may do with fermix: talk to it, follow its turns, keep its sessions. "
    "Every refusal has the same JSON, `{error: {code, message, hint}}`; under /v1 it is OpenAI's. "
    "Streams are server-sent events; clients ignore event names they do not know."
)


def with_description(routes: Sequence[Route]) -> tuple[Route, ...]:
    """The routes, and the one that describes them all."""

    def answer(call: Call) -> object:
        return Answer(body=document())

    @cache
    def document() -> bytes:
        return msgspec.json.encode(describe(described))

    own = Route(method="GET", path=PATH, summary="This description.", answer=answer, tag="description")
    described = (*routes, own)
    return described


def describe(routes: Iterable[Route]) -> Described:
    """An OpenAPI 3.1 document."""
    table = list(routes)
    schemas = _schemas(table)
    paths: dict[str, Described] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "fermix", "version": __version__, "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(route.tag for route in table) if name],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {
                SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The text of the file api-token of the home, or a token made with "
                    "`fermix tokens create NAME`.",
                }
            },
        },
    }


class _Schemas:
    """JSON Schemas of all types that stand in the table, and how to point at one."""

    def __init__(self, types: Sequence[type[msgspec.Struct]]) -> None:
        found, components = msgspec.json.schema_components(
            types, ref_template="#/components/schemas/{name}"
        )
        self.components = components
        for name, rule in RULES.items():
            self.components.get(name, {}).update(rule)
        self._of = dict(zip(types, found, strict=True))

    def of(self, kind: type[msgspec.Struct]) -> Described:
        return self._of[kind]

    def fields(self, kind: type[msgspec.Struct]) -> tuple[Described, list[str]]:
        """The properties of a flat struct, and which of them are required."""
        (own,), components = msgspec.json.schema_components((kind,), ref_template="{name}")
        schema = components[own["$ref"]]
        return schema.get("properties", {}), schema.get("required", [])


def _schemas(routes: Iterable[Route]) -> _Schemas:
    types: dict[type[msgspec.Struct], None] = {ErrorBody: None}
    for route in routes:
        for kind in (route.request, route.response, route.error):
            if kind is not None:
                types[kind] = None
    return _Schemas(list(types))


def _operation(route: Route, schemas: _Schemas) -> Described:
    described: Described = {
        "operationId": _id(route),
        "summary": route.summary,
        "responses": _responses(route, schemas),
        "security": [{SCHEME: []}] if route.needs_token else [{}, {SCHEME: []}],
    }
    if route.about:
        described["description"] = route.about
    if route.tag:
        described["tags"] = [route.tag]
    if parameters := [*_path(route), *_query(route, schemas), *_headers(route)]:
        described["parameters"] = parameters
    if route.request is not None:
        body: Described = {"schema": schemas.of(route.request)}
        if (example := EXAMPLES.get(route.request.__name__)) is not None:
            body["example"] = example
        described["requestBody"] = {"required": True, "content": {JSON: body}}
    elif route.takes_bytes:
        described["requestBody"] = {"required": False, "content": {BYTES: {"schema": {}}}}
    return described


def _id(route: Route) -> str:
    """`get_sessions_name_messages`."""
    return re.sub(r"\W+", "_", f"{route.method.lower()} {route.path}").strip("_")


def _path(route: Route) -> Iterable[Described]:
    for name in re.findall(r"{(\w+)}", route.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": PATH_SCHEMAS.get(name, {"type": "string", "minLength": 1}),
            "example": PATH_EXAMPLES.get(name, name),
        }


def _query(route: Route, schemas: _Schemas) -> Iterable[Described]:
    if route.query is NoQuery:
        return
    properties, required = schemas.fields(route.query)
    for name, schema in properties.items():
        yield {"name": name, "in": "query", "required": name in required, "schema": _without_null(schema)}


def _without_null(schema: Described) -> Described:
    """A parameter is there or not; it is never null."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**kinds[0], **rest}


def _headers(route: Route) -> Iterable[Described]:
    for header in route.headers:
        yield {
            "name": header.name,
            "in": "header",
            "required": False,
            "description": header.meaning,
            "schema": header.schema,
        }


def _responses(route: Route, schemas: _Schemas) -> Described:
    statuses = {*EVERYWHERE, *UNREAD, *route.errors, *((401,) if route.needs_token else ())}
    said: Described = {"200": _success(route, schemas)}
    for status in sorted(statuses):
        said[str(status)] = _failure(route, status, schemas)
    return said


def _success(route: Route, schemas: _Schemas) -> Described:
    content: Described = {}
    if route.method != "HEAD":
        for media_type in route.media_types:
            content[media_type] = {"schema": {}}
            if media_type == EVENTS:
                content[media_type] = {"schema": EVENT, "example": EVENT_EXAMPLES[route.path]}
            elif media_type == JSON:
                content[media_type] = {
                    "schema": schemas.of(route.response) if route.response else {"type": "object"}
                }
    return {"description": "As asked.", **({"content": content} if content else {})}


def _failure(route: Route, status: int, schemas: _Schemas) -> Described:
    described: Described = {"description": REASONS[status]}
    if route.method != "HEAD":
        schema = schemas.of(ErrorBody if status in UNREAD else route.error)
        if status == 503 and route.response is not None and route.tag == "health":
            schema = {"anyOf": [schemas.of(route.response), schema]}
        described["content"] = {JSON: {"schema": schema}}
    if status in (429, 503):
        described["headers"] = {
            "Retry-After": {
                "description": "Seconds to wait.",
                "schema": {"type": "integer", "minimum": 0},
                "example": RETRY_S,
            }
        }
    if status == 401:
        described["headers"] = {
            "WWW-Authenticate": {"description": "Which proof is expected.", "schema": {"type": "string"}}
        }
    return described
