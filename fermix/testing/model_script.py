"""What a scripted model answers: steps taken one by one, or rules on the person's last text.

A script is a JSON list of steps, or an object:

    {"steps": [STEP, …],                     each request takes the next one
     "rules": [{"when": "text", "then": [STEP, …]}],
     "default": STEP,                        when neither steps nor rules have an answer
     "ollama": {"model": ["tools", …]},      also answer as an Ollama with these models
     "models": ["name", …],                  list these; any other is unknown (left out: all are known)
     "facts": {"name": {…}},                 what a list or Ollama's show says of it beside its name
     "is_listing": false,                    do not list models at all
     "keys": ["key", …]}                     answer these keys only

A rule counts when its text stands in the last user message (`""` always does). Which of its
steps is taken depends only on the request: as many assistant messages as follow that user
message, so a request repeated after a crash gets the same answer again.

STEP is one of
    {"say": "text", "chunks": 3}             `{text}` stands for the last user text
    {"tool_calls": [{"name": "shell", "arguments": {…}}], "say": "…"}
    {"status": 429, "retry_after": 2, "error": {…}}
    {"raw": ["data: …\\n\\n", …]}              sent as it stands
    {"hang": true}                           nothing, until the client goes
with any of "reasoning", "first_delay_ms", "delay_ms" (before every chunk), "cut_after" (chunks,
then the connection breaks), "hang_after" (chunks, then silence), "finish_reason", "usage".
"""

from __future__ import annotations

from typing import Any

import msgspec

from fermix.testing.model_wires import text_of, told


class Call(msgspec.Struct):
    """A tool call the model makes."""

    name: str
    arguments: dict[str, Any] | str = {}
    """A text is sent as it stands, for arguments that are not JSON."""
    id: str | None = None


class Step(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One answer; see the head of this file."""

    say: str = ""
    chunks: int = 1
    reasoning: str = ""
    tool_calls: list[Call] = []
    first_delay_ms: float = 0
    delay_ms: float = 0
    status: int = 200
    retry_after: float | str | None = None
    error: Any = None
    raw: list[str] | None = None
    content_type: str | None = None
    """None is the one of the wire."""
    cut_after: int | None = None
    hang: bool = False
    hang_after: int | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    """Answers for requests whose last user text contains `when`."""

    when: str
    then: list[Step]


class Script(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything a scripted model knows."""

    steps: list[Step] = []
    rules: list[Rule] = []
    default: Step | None = None
    ollama: dict[str, list[str]] | None = None
    models: list[str] | None = None
    facts: dict[str, dict[str, Any]] = {}
    is_listing: bool = True
    keys: list[str] | None = None

    def refusal(self, authorization: str, model: object) -> tuple[int, dict[str, Any]] | None:
        """Status and error of a request with a wrong key or model, in OpenAI's words; None when good."""
        if self.keys is not None and authorization not in [f"Bearer {key}" for key in self.keys]:
            told = {"message": "Incorrect API key provided.", "code": "invalid_api_key"}
            return 401, {**told, "type": "invalid_request_error"}
        if self.models is not None and model is not None and model not in self.models:
            told = {"message": f"The model `{model}` does not exist.", "code": "model_not_found"}
            return 404, {**told, "type": "invalid_request_error"}
        return None

    def answer(self, request: dict[str, Any]) -> Step:
        """The next step for `request`; a 500 that says so when the script has none."""
        text, replies = last_user_text(request)
        for rule in self.rules:
            if rule.when in text:
                return rule.then[min(replies, len(rule.then) - 1)]
        if self.steps:
            return self.steps.pop(0)
        if self.default is not None:
            return self.default
        return Step(status=500, error={"message": f"The script has no answer left for {text[:100]!r}."})


def read_script(text: bytes) -> Script:
    """The script in a JSON text, in either form."""
    if text.lstrip().startswith(b"["):
        return Script(steps=msgspec.json.decode(text, type=list[Step]))
    return msgspec.json.decode(text, type=Script)


def last_user_text(request: dict[str, Any]) -> tuple[str, int]:
    """What a person said last, without fermix's note, and how many assistant messages stand behind it."""
    replies = 0
    for message in reversed(request.get("messages", [])):
        if message.get("role") == "assistant":
            replies += 1
        elif message.get("role") == "user":
            return without_note(text_of(message.get("content"))), replies
    return "", replies


def without_note(text: str) -> str:
    """`text` without the last paragraph, when that is the line in brackets fermix adds."""
    words, _, note = text.rpartition("\n\n[")
    return words if note.endswith("]") and "\n" not in note else text


def filled(value: Any, text: str) -> Any:
    """`value` with `{text}` replaced by the last user text, in nested values too."""
    if isinstance(value, str):
        return value.replace("{text}", text)
    if isinstance(value, dict):
        return {key: filled(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, text) for item in value]
    return value


def chunks_of(
    step: Step, request: dict[str, Any], *, number: int, wire: str = "openai_chat"
) -> list[bytes]:
    """The pieces of the event stream that `step` answers, end marker included.

    `number` makes the ids of this answer's tool calls unlike those of any other.
    """
    if step.raw is not None:
        return [piece.encode() for piece in step.raw]
    text, _ = last_user_text(request)
    said = filled(step.say, text)
    size = max(1, -(-len(said) // max(1, step.chunks)))
    parts = [said[at : at + size] for at in range(0, len(said), size)]
    reason = step.finish_reason or ("tool_calls" if step.tool_calls else "stop")
    usage = step.usage or {"prompt_tokens": len(str(request)) // 4, "completion_tokens": 1 + len(said) // 4}
    calls = [
        (call.id or f"call_{number}_{position}", call.name, _arguments(call, text))
        for position, call in enumerate(step.tool_calls)
    ]
    if wire != "openai_chat":
        return told(wire, pieces=parts, thinking=step.reasoning, calls=calls, counts=usage, reason=reason)
    pieces: list[bytes] = []
    if step.reasoning:
        pieces.append(_chunk({"reasoning_content": step.reasoning}))
    pieces += [_chunk({"content": part}) for part in parts]
    for position, (id, name, whole) in enumerate(calls):
        head = {"index": position, "id": id, "type": "function"}
        pieces.append(_chunk({"tool_calls": [head | {"function": {"name": name, "arguments": ""}}]}))
        half = len(whole) // 2
        pieces += [
            _chunk({"tool_calls": [{"index": position, "function": {"arguments": part}}]})
            for part in (whole[:half], whole[half:])
        ]
    end = _chunk({}, finish_reason=reason) + _event({"choices": [], "usage": usage}) + b"data: [DONE]\n\n"
    return [*pieces, end]


def _arguments(call: Call, text: str) -> str:
    given = filled(call.arguments, text)
    return given if isinstance(given, str) else msgspec.json.encode(given).decode()


def _chunk(delta: dict[str, Any], *, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return _event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
