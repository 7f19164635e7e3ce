"""What the bytes of a request are: parts that add up, and a first request that stays small."""

from __future__ import annotations

import pytest

from fermix.agent.bootstrap import Bootstrap
from fermix.agent.composer import Composer
from fermix.agent.settings import AgentSettings
from fermix.agent.weighing import Weighed, weigh
from fermix.capabilities.registry import Registry
from fermix.messages import UserMessage
from fermix.providers.apis.openai_chat import API
from fermix.providers.apis.wire import Route
from fermix.providers.port import ModelLimits, ModelRequest, ToolSchema
from fermix.tools import TOOLS
from fermix.trust import OPERATOR_ATTENDED

STANDARD = [
    ToolSchema(tool.name, tool.description, tool.parameters)
    for tool in Registry(TOOLS).visible(OPERATOR_ATTENDED)
]
NOTE = "[Tue 2026-12-01 13:05 +01:00]"


class Scale:
    """Weighs, and keeps what was encoded."""

    def __init__(self, limits: ModelLimits | None = None, **words: str) -> None:
        self.limits = limits or ModelLimits()
        self.composer = Composer(AgentSettings(), Bootstrap(**words) if words else None)
        self.encoded: list[bytes] = []

    def weigh(self, text: str = "ping", tools: list[ToolSchema] = STANDARD) -> Weighed:
        return weigh(
            UserMessage(text, NOTE),
            composer=self.composer,
            limits=self.limits,
            tools=tools,
            encode=self._encode,
        )

    def _encode(self, request: ModelRequest) -> bytes:
        body = API.encode(request, Route(provider="p", model="m", limits=self.limits))
        self.encoded.append(body)
        return body


def test_bare_ping_with_the_standard_tools_is_small() -> None:
    weighed = Scale().weigh()

    assert weighed.size_bytes <= 12 * 1024
    assert [part.name for part in weighed.parts if part.kind == "tool"] == [tool.name for tool in STANDARD]


@pytest.mark.parametrize("words", [{}, {"identity": 'I am "Hal"\n🙂', "rules": "", "persona": "ü" * 5000}])
def test_parts_add_up_to_what_is_sent(words: dict[str, str]) -> None:
    scale = Scale(**words)

    weighed = scale.weigh('say "hi"')

    assert weighed.size_bytes == sum(part.size_bytes for part in weighed.parts) == len(scale.encoded[0])
    framing = weighed.parts[-1]
    assert framing.kind == "framing"
    assert 0 < framing.size_bytes < 300


def test_each_tool_weighs_what_the_request_is_longer_by() -> None:
    with_it, without = Scale().weigh(), Scale().weigh(tools=STANDARD[1:])
    (first,) = (part for part in with_it.parts if part.name == STANDARD[0].name)

    assert with_it.size_bytes - without.size_bytes == first.size_bytes


def test_small_model_gets_neither_tools_nor_the_long_instructions() -> None:
    weighed = Scale(ModelLimits(takes_tools=False, prompt_bytes=1024)).weigh()

    assert [part.kind for part in weighed.parts] == ["instructions", "message", "framing"]
    assert weighed.size_bytes < 1024
