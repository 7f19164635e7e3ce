"""A tool is one decorated function; its schema comes from the signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from fermix.capabilities.context import ToolContext
from fermix.errors import ToolRetry
from fermix.trust import Policy

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing a model may ask for."""

    name: str
    description: str
    policy: Policy
    parameters: dict[str, Any]
    """JSON Schema of the arguments object."""
    arguments: type[msgspec.Struct]
    function: Callable[..., str]

    def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """What the tool says.

        Raises: ToolRetry when the arguments do not fit the schema; whatever the tool raises.
        """
        try:
            typed = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as error:
            expected = ", ".join(self.parameters["properties"]) or "no arguments"
            raise ToolRetry(
                f"{self.name} cannot take these arguments: {error}. Expected: {expected}."
            ) from error
        return self.function(context, **msgspec.structs.asdict(typed))


def tool(*, policy: Policy) -> Callable[[Callable[..., str]], Tool]:
    """Make a function `(ctx, …) -> str` a tool of this policy class.

    The docstring's first paragraph is the description; lines `name: text` describe parameters.
    """

    def decorate(function: Callable[..., str]) -> Tool:
        name = function.__name__
        if not NAME.fullmatch(name):
            raise ValueError(f"A tool name is {NAME.pattern}, not {name!r}.")
        summary, described = _read_docstring(inspect.getdoc(function) or "")
        arguments = _arguments_of(function)
        return Tool(
            name=name,
            description=summary,
            policy=policy,
            parameters=_schema_of(arguments, described),
            arguments=arguments,
            function=function,
        )

    return decorate


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    summary, _, rest = text.partition("\n\n")
    described = dict(re.findall(r"^(\w+): (.+)$", rest, flags=re.MULTILINE))
    return " ".join(summary.split()), described


def _arguments_of(function: Callable[..., str]) -> type[msgspec.Struct]:
    hints = get_type_hints(function)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hints[parameter.name]))
        else:
            fields.append((parameter.name, hints[parameter.name], parameter.default))
    return msgspec.defstruct(
        function.__name__, fields, kw_only=True, frozen=True, forbid_unknown_fields=True
    )


def _schema_of(arguments: type[msgspec.Struct], described: dict[str, str]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([arguments])
    made = components[arguments.__name__]
    properties = {
        # a parameter nobody described would leave the model guessing: KeyError at definition
        name: {**kind, "description": described[name]}
        for name, kind in made.get("properties", {}).items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": made.get("required", []),
        "additionalProperties": False,
    }
