"""A function becomes a tool, and a model's arguments become its parameters."""

from __future__ import annotations

import pytest

from fermix.capabilities.context import ToolContext
from fermix.capabilities.tool import tool
from fermix.errors import ToolRetry
from fermix.trust import Policy


@tool(policy=Policy.READ_ONLY)
def search(
    ctx: ToolContext, words: str, limit: int = 5, exact: bool = False, tags: list[str] | None = None
) -> str:
    """Find pages
    by their words.

    More about it that a model need not know.

    words: What to look for.
    limit: How many at the most.
    exact: Whether case counts.
    tags: Only pages that carry one of these.
    """
    return f"{words} {limit} {exact} {tags}"


def test_schema_comes_from_signature_and_docstring() -> None:
    assert (search.name, search.description, search.policy) == (
        "search",
        "Find pages by their words.",
        Policy.READ_ONLY,
    )
    assert search.parameters["required"] == ["words"]
    assert search.parameters["additionalProperties"] is False
    properties = search.parameters["properties"]
    assert properties["words"] == {"type": "string", "description": "What to look for."}
    assert properties["limit"] == {"type": "integer", "default": 5, "description": "How many at the most."}
    assert list(properties) == ["words", "limit", "exact", "tags"]


def test_arguments_and_defaults_reach_the_function() -> None:
    assert search.run(None, {"words": "a", "tags": ["x"]}) == "a 5 False ['x']"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "words"),
        ({"words": 5}, r"\$\.words"),
        ({"words": "a", "limit": "many"}, r"\$\.limit"),
        ({"words": "a", "limit": None}, r"\$\.limit"),
        ({"words": "a", "tags": ["x", 1]}, r"\$\.tags\[1\]"),
        ({"words": "a", "wrods": "b"}, "wrods"),
    ],
)
def test_wrong_arguments_are_answered_with_the_field_and_what_is_expected(arguments, named: str) -> None:
    with pytest.raises(ToolRetry, match=named) as refused:
        search.run(None, arguments)

    assert "Expected: words, limit, exact, tags." in refused.value.message


def test_parameter_without_words_for_the_model_cannot_be_declared() -> None:
    with pytest.raises(KeyError, match="silent"):

        @tool(policy=Policy.READ_ONLY)
        def broken(ctx: ToolContext, silent: str) -> str:
            """Do."""
            return silent


def test_name_a_model_could_not_use_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="Upper"):

        @tool(policy=Policy.READ_ONLY)
        def Upper(ctx: ToolContext) -> str:
            """Do."""
            return ""
