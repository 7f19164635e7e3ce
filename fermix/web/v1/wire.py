"""The chat completions request as OpenAI's clients send it.

What fermix has no use for (temperature, seed, user, …) is not declared and so taken and ignored.
Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fermix.web.schema import WORDS_PATTERN, SessionName

MODEL = "fermix"
"""What fermix is called as a model: whichever its settings name."""
MODEL_PATTERN = r"^(fermix|[!-.0-~]+/[!-~]+)$"
DATA_URL = r"^data:[\w.+-]+/[\w.+-]+;base64,([A-Za-z0-9+/]{4})+$"
"""What the description says of embedded files; a last group with padding is taken too."""


class TextPart(msgspec.Struct, tag_field="type", tag="text"):
    """Words."""

    text: str


class RefusalPart(msgspec.Struct, tag_field="type", tag="refusal"):
    """Words with which a model refused."""

    refusal: str


class ImageUrl(msgspec.Struct):
    """An image inside the request; addresses are not fetched."""

    url: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": DATA_URL})]
    """A data URL with base64."""


class ImagePart(msgspec.Struct, tag_field="type", tag="image_url"):
    """An image to look at."""

    image_url: ImageUrl


class FileData(msgspec.Struct):
    """A file inside the request."""

    file_data: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": DATA_URL})]
    """A data URL with base64."""
    filename: str | None = None


class FilePart(msgspec.Struct, tag_field="type", tag="file"):
    """A file to work with."""

    file: FileData


Words = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": WORDS_PATTERN})]
Parts = Annotated[
    list[TextPart | ImagePart | FilePart],
    msgspec.Meta(
        min_length=1,
        extra_json_schema={
            "contains": {
                "anyOf": [
                    {"required": ["type"], "properties": {"type": {"enum": ["image_url", "file"]}}},
                    {
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "text"}, "text": {"pattern": WORDS_PATTERN}},
                    },
                ]
            }
        },
    ),
]


class SystemMessage(msgspec.Struct, tag_field="role", tag="system"):
    """Instructions of the calling program."""

    content: str | list[TextPart]


class DeveloperMessage(msgspec.Struct, tag_field="role", tag="developer"):
    """Instructions of the calling program, under their newer name."""

    content: str | list[TextPart]


class PersonMessage(msgspec.Struct, tag_field="role", tag="user"):
    """What a person said; the last of them is what fermix answers."""

    content: Words | Parts


class ModelMessage(msgspec.Struct, tag_field="role", tag="assistant"):
    """What was answered before."""

    content: str | list[TextPart | RefusalPart] | None = None


class ToolResult(msgspec.Struct, tag_field="role", tag="tool"):
    """The result of a tool of the calling program; fermix has its own and ignores it."""

    content: str | list[TextPart] | None = None


class FunctionResult(msgspec.Struct, tag_field="role", tag="function"):
    """The same under its older name."""

    content: str | None = None


Message = SystemMessage | DeveloperMessage | PersonMessage | ModelMessage | ToolResult | FunctionResult


class StreamOptions(msgspec.Struct):
    """What a stream brings besides the words."""

    include_usage: bool | None = None
    """One more chunk at the end with the tokens that were counted."""


class ResponseFormat(msgspec.Struct):
    """Only text can be promised."""

    type: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["text"]})]


class Metadata(msgspec.Struct):
    """Anything the caller likes; fermix reads `session`."""

    session: SessionName | None = None
    """Continue this session of fermix, as the header X-Fermix-Session does."""


class ChatRequest(msgspec.Struct):
    """`POST /v1/chat/completions`."""

    model: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": MODEL_PATTERN})]
    """`fermix` for the model of its settings, else `PROVIDER/MODEL`."""
    messages: Annotated[
        list[Message],
        msgspec.Meta(
            min_length=1,
            extra_json_schema={
                "contains": {
                    "type": "object",
                    "properties": {"role": {"const": "user"}},
                    "required": ["role"],
                }
            },
        ),
    ]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, msgspec.Meta(ge=1, extra_json_schema={"maximum": 1})] | None = None
    reasoning_effort: str | None = None
    """One of the model's levels of thinking; null leaves it to the settings."""
    response_format: ResponseFormat | None = None
    metadata: Metadata | None = None
    tools: Any = None
    """Ignored with a notice: fermix acts with its own tools."""
    functions: Any = None
    """Likewise."""
    max_tokens: Any = None
    """Ignored with a notice."""
    max_completion_tokens: Any = None
    """Ignored with a notice."""
    stop: Any = None
    """Ignored with a notice."""
    logprobs: Any = None
    """Ignored with a notice."""
    audio: Any = None
    """Ignored with a notice."""


IGNORED = ("tools", "functions", "max_tokens", "max_completion_tokens", "stop", "logprobs", "audio")


class Model(msgspec.Struct):
    """The one model."""

    id: str = MODEL
    object: str = "model"
    created: int = 1_767_225_600
    """The wire wants a time, s; nothing rests on it."""
    owned_by: str = "fermix"


class ModelList(msgspec.Struct):
    """`GET /v1/models`."""

    data: list[Model]
    object: str = "list"


class CachedTokens(msgspec.Struct):
    """What the provider had read before."""

    cached_tokens: int


class TokenUsage(msgspec.Struct):
    """Tokens of the whole turn, all its model calls together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class About(msgspec.Struct):
    """What fermix says beyond OpenAI's wire."""

    turn_id: str
    session: str
    notice: str | None
    """What of the request was ignored, and what a person should know of the turn; null when nothing."""


class ReplyMessage(msgspec.Struct):
    """The answer."""

    content: str
    role: str = "assistant"
    refusal: str | None = None


class Choice(msgspec.Struct):
    """The one answer there is."""

    message: ReplyMessage
    index: int = 0
    finish_reason: str = "stop"
    logprobs: None = None


class ChatCompletion(msgspec.Struct):
    """A whole answer."""

    id: str
    created: int
    """When the message came, s."""
    choices: list[Choice]
    usage: TokenUsage
    fermix: About
    object: str = "chat.completion"
    model: str = MODEL
    """As the request named it."""


class Delta(msgspec.Struct, omit_defaults=True):
    """What a chunk adds."""

    role: str | msgspec.UnsetType = msgspec.UNSET
    content: str | msgspec.UnsetType = msgspec.UNSET


class ChunkChoice(msgspec.Struct):
    """The one answer's next piece."""

    delta: Delta
    finish_reason: str | None = None
    index: int = 0
    logprobs: None = None


class ChatChunk(msgspec.Struct):
    """A piece of a streamed answer."""

    id: str
    created: int
    choices: list[ChunkChoice]
    usage: TokenUsage | msgspec.UnsetType | None = msgspec.UNSET
    fermix: About | msgspec.UnsetType = msgspec.UNSET
    """In the first and the last chunk with a choice."""
    object: str = "chat.completion.chunk"
    model: str = MODEL


class OpenAIErrorDetail(msgspec.Struct):
    """What went wrong."""

    message: str
    type: str
    code: str | None
    param: str | None = None
    """Which part of the request; null when no single one."""


class OpenAIError(msgspec.Struct):
    """Every refusal under /v1.

    Source: https://platform.openai.com/docs/guides/error-codes
    """

    error: OpenAIErrorDetail
