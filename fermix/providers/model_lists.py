"""What servers tell of their models, in the words of each, as one kind of fact.

Source: https://openrouter.ai/docs/models (`context_length`, `top_provider`, `pricing` in USD for one token,
`architecture.input_modalities`, `supported_parameters`); https://docs.mistral.ai/api (`max_context_length`,
`capabilities.vision` and `.function_calling`); https://platform.claude.com/docs/en/api/models/list
(`max_input_tokens`, `max_tokens`, `capabilities.image_input` and `.effort` with a claim for each level);
https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/engine/protocol.py (`max_model_len`);
https://docs.ollama.com/api-reference/show-model-details (`capabilities`, `model_info` with the window under
the name of the architecture, `thinking.values`); read 2026-12-01.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fermix.providers.apis.wire import number
from fermix.providers.learned import Learned
from fermix.providers.limits import Price

_LARGEST = 100_000_000
"""Most tokens a window is believed to have."""
_SMALLEST = 512
"""Fewest."""
_DEAREST = 1_000_000_000_000
"""Micro-USD for a million tokens: a million dollars."""
_LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")


class _Claim(msgspec.Struct):
    supported: bool = False


class _Effort(msgspec.Struct):
    """A level that is not there is not supported."""

    supported: bool = False
    minimal: _Claim | None = None
    low: _Claim | None = None
    medium: _Claim | None = None
    high: _Claim | None = None
    xhigh: _Claim | None = None
    max: _Claim | None = None


class _Can(msgspec.Struct):
    vision: bool | None = None
    function_calling: bool | None = None
    image_input: _Claim | None = None
    effort: _Effort | None = None


class _Pricing(msgspec.Struct):
    prompt: Any = None
    completion: Any = None
    input_cache_read: Any = None
    input_cache_write: Any = None


class _Top(msgspec.Struct):
    context_length: Any = None
    max_completion_tokens: Any = None


class _Architecture(msgspec.Struct):
    input_modalities: list[str] | None = None


class _Model(msgspec.Struct):
    id: str = ""
    context_length: Any = None
    max_context_length: Any = None
    max_model_len: Any = None
    max_input_tokens: Any = None
    max_tokens: Any = None
    top_provider: _Top | None = None
    architecture: _Architecture | None = None
    supported_parameters: list[str] | None = None
    pricing: _Pricing | None = None
    capabilities: _Can | list[Any] | None = None


class _Listed(msgspec.Struct):
    data: list[msgspec.Raw] = []


class _Names(msgspec.Struct):
    id: str = ""
    aliases: Any = None


class _Thinking(msgspec.Struct):
    values: list[bool | str] = []


class _Shown(msgspec.Struct):
    capabilities: list[str] | None = None
    model_info: dict[str, Any] = {}
    thinking: _Thinking | None = None


def read_listed(body: bytes, model: str, *, today: str) -> Learned | None:
    """What a list of models says of one; None when it does not name it, or is no list.

    today: the date a price is from then on known to be of.
    """
    try:
        listed = msgspec.json.decode(body, type=_Listed)
        raw = next((each for each in listed.data if model in _names(each)), None)
        return None if raw is None else _learned(msgspec.json.decode(raw, type=_Model), today)
    except (msgspec.DecodeError, RecursionError):
        return None


def read_shown(body: bytes) -> Learned | None:
    """What an Ollama says of a model it was asked about; None when it says nothing."""
    try:
        shown = msgspec.json.decode(body, type=_Shown)
    except (msgspec.DecodeError, RecursionError):
        return None
    if shown.capabilities is None:
        return None
    architecture = str(shown.model_info.get("general.architecture"))
    levels = shown.thinking.values if shown.thinking else []
    return Learned(
        window_tokens=_window(shown.model_info.get(f"{architecture}.context_length")),
        sees_images="vision" in shown.capabilities,
        takes_tools="tools" in shown.capabilities,
        efforts=tuple(level for level in levels if isinstance(level, str)),
    )


def _names(raw: msgspec.Raw) -> tuple[object, ...]:
    try:
        names = msgspec.json.decode(raw, type=_Names)
    except (msgspec.DecodeError, RecursionError):
        return ()
    return (names.id, *(names.aliases if isinstance(names.aliases, list) else ()))


def _learned(model: _Model, today: str) -> Learned:
    top = model.top_provider or _Top()
    can = model.capabilities if isinstance(model.capabilities, _Can) else _Can()
    sees = can.vision if can.image_input is None else can.image_input.supported
    if model.architecture is not None and model.architecture.input_modalities is not None:
        sees = "image" in model.architecture.input_modalities
    tools = can.function_calling
    if model.supported_parameters is not None:
        tools = "tools" in model.supported_parameters
    windows = (
        top.context_length,
        model.context_length,
        model.max_context_length,
        model.max_model_len,
        model.max_input_tokens,
    )
    return Learned(
        window_tokens=next((found for each in windows if (found := _window(each))), None),
        max_output_tokens=_count(top.max_completion_tokens) or _count(model.max_tokens),
        sees_images=sees,
        takes_tools=tools,
        efforts=_efforts(can.effort),
        price=_price(model.pricing, today) if model.pricing else None,
    )


def _efforts(effort: _Effort | None) -> tuple[str, ...]:
    if effort is None or not effort.supported:
        return ()
    claims: list[tuple[str, _Claim | None]] = [(level, getattr(effort, level)) for level in _LEVELS]
    return tuple(level for level, claim in claims if claim is not None and claim.supported)


def _price(pricing: _Pricing, today: str) -> Price | None:
    """None where it is left out, or negative: a router says so that it depends on what it takes."""
    prompt, completion = _micro(pricing.prompt), _micro(pricing.completion)
    if prompt is None or completion is None:
        return None
    read, written = _micro(pricing.input_cache_read), _micro(pricing.input_cache_write)
    return Price(
        input=prompt,
        output=completion,
        cached=prompt if read is None else read,
        written=prompt if written is None else written,
        as_of=today,
    )


def _micro(usd: object) -> int | None:
    """Micro-USD for a million tokens from USD for one."""
    told = number(usd)
    if told is None or not 0 <= told * 1_000_000_000_000 <= _DEAREST:
        return None
    return round(told * 1_000_000_000_000)


def _count(value: object) -> int | None:
    told = number(value)
    return int(told) if told is not None and 1 <= told <= _LARGEST else None


def _window(value: object) -> int | None:
    """A window nothing fits into is a mistake and no window."""
    told = _count(value)
    return told if told is not None and told >= _SMALLEST else None
