"""`prompt.size`: what the bytes of a request are, before a conversation adds its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec

from fermix.agent.loop import Agent
from fermix.capabilities.registry import Registry
from fermix.clock import Clock
from fermix.daemon.methods.access import operators, standing_of
from fermix.gateway.authorizer import LOCAL
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.note import note_of
from fermix.ipc.server import Call, Method
from fermix.messages import ConversationKey, Inbound, UserMessage
from fermix.providers.port import ToolSchema

if TYPE_CHECKING:
    from fermix.agent.weighing import Weight


class SizeParams(msgspec.Struct):
    """`prompt.size`: of the request these words alone would make."""

    text: Annotated[str, msgspec.Meta(max_length=65_536)] = "ping"


class PromptMethods:
    """Answers it from the agent in force."""

    def __init__(self, *, agent: Callable[[], Agent], registry: Registry, clock: Clock) -> None:
        """`agent` gives the one that answers the next turn."""
        self._agent = agent
        self._registry = registry
        self._clock = clock

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {"prompt.size": operators(SizeParams, self._size)}

    def _size(self, params: SizeParams, call: Call) -> Mapping[str, object]:
        from fermix.agent.weighing import weigh  # asked for seldom
        from fermix.providers.apis.openai_chat import API  # loaded already where it is spoken
        from fermix.providers.apis.wire import Route

        agent = self._agent()
        provider, standing = agent.provider, standing_of(call)
        key = ConversationKey(LOCAL, "")
        now_ms = self._clock.now_ms()
        words = Inbound(key=key, platform_id="", sender_id="", text=params.text, received_ms=now_ms)
        note = note_of(InboxEntry("", "", words, standing, "", 0), now_ms)
        tools = [
            ToolSchema(tool.name, tool.description, tool.parameters)
            for tool in self._registry.visible(standing)
        ]
        route = Route(provider=provider.name, model=provider.model, limits=provider.limits)
        weighed = weigh(
            UserMessage(params.text, note),
            composer=agent.composer,
            limits=provider.limits,
            tools=tools,
            encode=lambda request: API.encode(request, route),
        )
        return {
            "provider": provider.name,
            "model": provider.model,
            "parts": [_facts(part) for part in weighed.parts],
            "total_bytes": weighed.size_bytes,
            "total_tokens": sum(part.tokens for part in weighed.parts),
            "problems": list(agent.composer.bootstrap.problems),
        }


def _facts(part: Weight) -> dict[str, object]:
    return {"kind": part.kind, "name": part.name, "bytes": part.size_bytes, "tokens": part.tokens}
