"""The description tells of every route, and of nothing that is not served."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from fermix.web.openapi import describe
from fermix.web.table import ROUTES
from tests.web.service import Service

DOCUMENT: dict[str, Any] = json.loads(json.dumps(describe(ROUTES)))


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def inside(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a document."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from inside(each)
    elif isinstance(value, list):
        for each in value:
            yield from inside(each)


def test_what_is_described_is_what_is_served() -> None:
    assert {(route.method, route.path) for route in ROUTES} == {
        (method, path) for method, path, _ in operations()
    }


def test_document_is_served_to_whoever_shows_a_token(service: Service) -> None:
    answer = service.send("GET", "/openapi.json")

    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == DOCUMENT
    assert service.send("GET", "/openapi.json", token=None).status == 401


def test_every_reference_leads_somewhere() -> None:
    for each in inside(DOCUMENT):
        if "$ref" in each:
            *folders, name = each["$ref"].removeprefix("#/").split("/")
            assert folders == ["components", "schemas"]
            assert name in DOCUMENT["components"]["schemas"]


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    list(operations()),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_operation_is_described_in_full(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["summary"].endswith(".") and operation["tags"]
    parameters = operation.get("parameters", [])
    assert [each["name"] for each in parameters if each["in"] == "path"] == re.findall(r"{(\w+)}", path)
    assert all("schema" in each for each in parameters)
    statuses = set(operation["responses"])
    assert {"200", "400", "403", "429", "500"} <= statuses
    assert ("401" in statuses) is (operation["security"] == [{"token": []}])
    for status, told in operation["responses"].items():
        assert told["description"]
        assert ("content" in told) is (method != "HEAD"), status


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]

    assert len(set(names)) == len(names)


def test_streams_are_described_as_events_with_an_example() -> None:
    streamed = {
        path
        for _, path, operation in operations()
        if "example" in operation["responses"]["200"].get("content", {}).get("text/event-stream", {})
    }

    assert streamed == {"/message", "/turns/{turn_id}/events", "/v1/chat/completions"}


def test_refusals_have_the_shape_of_their_routes() -> None:
    for _, path, operation in operations():
        refused = operation["responses"]["400"].get("content")
        if refused is not None:
            name = refused["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert name == ("OpenAIError" if path.startswith("/v1/") else "ErrorBody")


def test_patterns_are_of_a_kind_that_every_reader_knows() -> None:
    for each in inside(DOCUMENT["components"]["schemas"]):
        if isinstance(pattern := each.get("pattern"), str):
            re.compile(pattern)
            assert r"\p" not in pattern


def test_examples_are_accepted(service: Service) -> None:
    for _, path, operation in operations():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        if "example" in content:
            assert service.send("POST", path, content["example"]).status == 200
