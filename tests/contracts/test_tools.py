"""Every built-in tool tells a model all it needs and declares what it does to the world."""

from __future__ import annotations

import ast
import inspect

import msgspec
import pytest

from fermix.capabilities.tool import NAME, Tool
from fermix.errors import ToolRetry
from fermix.tools import TOOLS
from fermix.trust import Policy

each = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
CHANGERS = {"write_file": Policy.READ_WRITE, "run_command": Policy.EXEC}
"""Effects that change something, and the least class of a tool that uses them."""


def test_names_are_unique() -> None:
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)


@each
def test_name_and_words_are_fit_for_a_model(tool: Tool) -> None:
    assert NAME.fullmatch(tool.name)
    assert 10 <= len(tool.description) <= 300 and tool.description.endswith(".")
    for name, field in tool.parameters["properties"].items():
        assert field["description"].endswith("."), name


@each
def test_schema_is_one_closed_object_of_known_types(tool: Tool) -> None:
    schema = msgspec.json.decode(msgspec.json.encode(tool.parameters))

    assert schema["type"] == "object" and schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for name, field in schema["properties"].items():
        assert field["type"] in ("string", "integer", "number", "boolean", "array"), name
        assert ("default" in field) is (name not in schema["required"])


@each
def test_declared_class_covers_the_effects_it_uses(tool: Tool) -> None:
    tree = ast.parse(inspect.getsource(tool.function))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    assert isinstance(tool.policy, Policy)
    for effect, policy in CHANGERS.items():
        if effect in used:
            assert tool.policy is policy


@each
def test_unknown_argument_is_refused(tool: Tool) -> None:
    with pytest.raises(ToolRetry):
        tool.run(None, {"no_such_argument": 1})
