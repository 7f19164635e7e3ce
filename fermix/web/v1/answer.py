"""A turn told on OpenAI's wire: whole, or as the chunks of a stream.

Source: https://platform.openai.com/docs/api-reference/chat/streaming
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fermix.gateway.watch import TurnEvent
from fermix.web.v1 import wire
from fermix.web.v1.failure import failed
from fermix.web.v1.tape import Tape

STATUS_OF = {"failed": 502, "cancelled": 409, "interrupted": 500}
"""How a turn ended → status of the answer to a request that is not streamed."""
DONE = b"data: [DONE]\n\n"
SILENCE = b": working\n\n"
BEGUN_ANEW = "The answer was begun anew after a restart and differs from what was sent."

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, kw_only=True)
class Told:
    """What is known of the turn that answers a request."""

    turn_id: str
    session: str
    created_s: int
    model: str = wire.MODEL
    """As the request named it."""
    notices: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.turn_id}"

    def about(self) -> wire.About:
        return wire.About(self.turn_id, self.session, " ".join(self.notices) or None)


def whole(answer: Told, ending: Mapping[str, object]) -> tuple[int, bytes]:
    """Status and body once the turn is over; `ending` is the data of its `done`."""
    if (failure := _failure(ending)) is not None:
        return failure[0], _encode(failure[1])
    said = wire.ChatCompletion(
        id=answer.id,
        created=answer.created_s,
        model=answer.model,
        choices=[wire.Choice(wire.ReplyMessage(str(ending.get("text", ""))))],
        usage=usage_of(ending),
        fermix=answer.about(),
    )
    return 200, _encode(said)


def chunks(
    answer: Told,
    events: Iterable[TurnEvent | None],
    *,
    includes_usage: bool,
    on_end: Callable[[], None] = lambda: None,
) -> Iterator[bytes]:
    """The stream's bytes as the turn goes on; None among the events is a silence.

    `on_end` is called before the piece that tells how the turn ended, if it comes to that.

    Words that are sent cannot be taken back on this wire. When the turn begins anew after a crash,
    what it says again is compared with them: while it is the same nothing is sent, and the first
    word that differs ends the stream with an error.
    """
    tape = Tape()
    yield _chunk(answer, wire.Delta(role="assistant", content=""), includes_usage, about=answer.about())
    for event in events:
        if event is None:
            yield SILENCE
            continue
        if event.name == "done":
            yield from _end(answer, tape, event.data, includes_usage, on_end)
            return
        if event.name == "notice":
            answer.notices.append(str(event.data["text"]))
            continue
        piece = tape.hear(event)
        if piece is None:
            yield line_of(failed(502, "answer_begun_anew", BEGUN_ANEW))
            return
        if piece:
            yield _chunk(answer, wire.Delta(content=piece), includes_usage)


def line_of(said: object) -> bytes:
    """One event of the stream."""
    return b"data: " + _encode(said) + b"\n\n"


def usage_of(ending: Mapping[str, object]) -> wire.TokenUsage:
    """The turn's tokens under OpenAI's names."""
    counted = ending.get("usage")
    tokens: Mapping[str, Any] = counted if isinstance(counted, Mapping) else {}
    asked, said = int(tokens.get("input_tokens", 0)), int(tokens.get("output_tokens", 0))
    return wire.TokenUsage(
        asked, said, asked + said, wire.CachedTokens(int(tokens.get("cached_tokens", 0)))
    )


def _end(
    answer: Told,
    tape: Tape,
    ending: Mapping[str, object],
    includes_usage: bool,
    on_end: Callable[[], None],
) -> Iterator[bytes]:
    if (failure := _failure(ending)) is not None:
        on_end()
        yield line_of(failure[1])
        return
    piece = tape.finish(str(ending.get("text", "")))
    if piece is None:
        yield line_of(failed(502, "answer_begun_anew", BEGUN_ANEW))
        return
    if piece:
        yield _chunk(answer, wire.Delta(content=piece), includes_usage)
    yield _chunk(answer, wire.Delta(), includes_usage, about=answer.about(), finish="stop")
    if includes_usage:
        last = wire.ChatChunk(
            id=answer.id, created=answer.created_s, model=answer.model, choices=[], usage=usage_of(ending)
        )
        yield line_of(last)
    on_end()
    yield DONE


def _failure(ending: Mapping[str, object]) -> tuple[int, wire.OpenAIError] | None:
    """Status and what is said of a turn that did not complete; None when it did."""
    status = str(ending.get("status"))
    if status == "completed":
        return None
    error = ending.get("error")
    code = str(error.get("code")) if isinstance(error, Mapping) else status
    number = STATUS_OF.get(status, 500)
    return number, failed(number, code, str(ending.get("text") or status))


def _chunk(
    answer: Told,
    delta: wire.Delta,
    includes_usage: bool,
    *,
    about: wire.About | None = None,
    finish: str | None = None,
) -> bytes:
    said = wire.ChatChunk(
        id=answer.id,
        created=answer.created_s,
        model=answer.model,
        choices=[wire.ChunkChoice(delta, finish)],
        usage=None if includes_usage else msgspec.UNSET,
        fermix=about if about is not None else msgspec.UNSET,
    )
    return line_of(said)
