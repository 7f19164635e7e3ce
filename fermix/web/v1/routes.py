"""`/v1`: the models, and chat completions answered by turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

from fermix.errors import FermixError, ModelPinRefused
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.watch import TurnEvent, TurnLog
from fermix.ids import new_id
from fermix.tasks import Deadline
from fermix.web import streams
from fermix.web.port import DeskPort, Upload, Words
from fermix.web.routes import EVENTS, JSON, Answer, Call, Header, Route, Stream
from fermix.web.schema import HEADER_PATTERN
from fermix.web.turns import log_of
from fermix.web.v1 import wire
from fermix.web.v1.answer import Told, chunks, line_of, whole
from fermix.web.v1.asked import SESSION_LENGTH, SESSION_PREFIX, Asked, client_id, understand
from fermix.web.v1.failure import PartRefused, shape

PIECE_BYTES = 1024 * 1024
REQUEST_BYTES = 32 * PIECE_BYTES
"""Largest request; with its files it is held in memory as a whole."""
SESSION_HEADER = "X-Fermix-Session"
NOTICE_HEADER = "X-Fermix-Notice"
KEY_HEADER = "Idempotency-Key"
KEY_LENGTH = 255
STOPS_RETRIES = {"x-should-retry": "false"}
"""OpenAI's clients ask again after a 5xx by themselves; a turn that acted is not run twice for that."""


def _models(call: Call) -> object:
    return wire.ModelList([wire.Model()])


def _model(call: Call) -> object:
    name = call.path["model"]
    if name != wire.MODEL:
        raise PartRefused(
            "model_not_found",
            f"No model {name[:80]!r} here; the one there is is {wire.MODEL!r}.",
            param="model",
            status=404,
        )
    return wire.Model()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chat:
    """One request and the turn that answers it."""

    call: Call
    asked: Asked
    entry: InboxEntry
    log: TurnLog
    can_be_found_again: bool
    """Whether somebody may come back for the answer: by its key or in its session."""

    def told(self) -> Told:
        notice = self.asked.notice
        return Told(
            turn_id=self.entry.turn_id,
            session=self.entry.key.chat_id,
            created_s=self.entry.inbound.received_ms // 1000,
            model=self.asked.model,
            notices=[notice] if notice else [],
        )

    def events(self) -> Generator[TurnEvent | None]:
        """What happens in the turn to its end; None is a long silence.

        Raises: Refused when the client leaves or loses its token; a turn that nobody can come back for
        is stopped then.
        """
        keep_alive_s = self.call.settings.keep_alive_s
        quiet_until = Deadline.after(keep_alive_s)
        is_away = False
        try:
            for event in self.log.watch(0, streams.TICK_S):
                if event is not None and not is_away and event.name != "notice":
                    is_away = True
                    self._put_away()
                self.call.check()
                if event is not None:
                    yield event
                elif quiet_until.is_over():
                    yield None
                else:
                    continue
                quiet_until = Deadline.after(keep_alive_s)
        except (FermixError, GeneratorExit):
            if not is_away:
                self._put_away()
            self._leave()
            raise

    def _put_away(self) -> None:
        """Keep a conversation of one request out of the list of sessions.

        Once its words are stored, that is when anything happens but a notice: they would bring it back.
        """
        if self.asked.session is None:
            with suppress(FermixError):  # a slash command makes no conversation
                self.call.desk().archive(self.entry.key.chat_id, is_archived=True)

    def _leave(self) -> None:
        if not self.can_be_found_again and not self.log.is_over:
            with suppress(FermixError):
                self.call.desk().cancel_turn(self.entry.turn_id)


def _chat(call: Call) -> object:
    session = _plain(call, SESSION_HEADER, SESSION_LENGTH)
    asked = understand(call.body, session=session)
    key = _plain(call, KEY_HEADER, KEY_LENGTH)
    id = client_id(key, session=asked.session) if key is not None else new_id(time.time_ns() // 1_000_000)
    with ExitStack() as stack:
        stack.callback(call.slot().free)
        entry = _accept(call, asked, id)
        chat = _Chat(
            call=call,
            asked=asked,
            entry=entry,
            log=log_of(call, entry.turn_id, 0),
            can_be_found_again=key is not None or asked.session is not None,
        )
        return _stream(chat, stack.pop_all().close) if asked.is_stream else _whole(chat)


def _stream(chat: _Chat, on_close: Callable[[], None]) -> Stream:
    return Stream(_pieces(chat), on_close=on_close, headers=_headers(chat.asked.notice))


def _pieces(chat: _Chat) -> Iterator[bytes]:
    def deliver() -> None:
        streams.deliver_when_sent(chat.call, chat.entry.turn_id)

    with closing(chat.events()) as events:
        try:
            yield from chunks(chat.told(), events, includes_usage=chat.asked.includes_usage, on_end=deliver)
        except FermixError as error:
            yield line_of(shape(error))


def _whole(chat: _Chat) -> Answer:
    told = chat.told()
    for event in chat.events():
        if event is not None and event.name == "notice":
            told.notices.append(str(event.data["text"]))
    streams.deliver_when_sent(chat.call, chat.entry.turn_id)
    status, body = whole(told, chat.log.ending)
    headers = _headers(chat.asked.notice)
    return Answer(body=body, status=status, headers=headers if status == 200 else headers | STOPS_RETRIES)


def _accept(call: Call, asked: Asked, id: str) -> InboxEntry:
    """The accepted message; the one there is when its key was used before."""
    desk = call.desk()
    session = asked.session or f"{SESSION_PREFIX}{id}"
    known = desk.known(id)
    if known is not None and known.key.chat_id == session:
        if known.inbound.text != asked.words:
            raise PartRefused(
                "idempotency_key_reused",
                f"This {KEY_HEADER} stands for a message with other words; expected a fresh one.",
                param=KEY_HEADER,
                status=409,
            )
        return known
    if known is None and asked.earlier:
        desk.seed(session, asked.earlier)
    words = Words(
        text=asked.words,
        client_id=id,
        session=session,
        pin=asked.pin,
        attachments=tuple(_upload(desk, file.name, file.media_type, file.body) for file in asked.files),
    )
    try:
        return desk.submit(words, sender_id=f"http {call.grant.name}" if call.grant is not None else "http")
    except ModelPinRefused as error:
        place = "model" if asked.model != wire.MODEL else "reasoning_effort"
        raise PartRefused("model_not_found", error.message, param=place, status=404) from error


def _upload(desk: DeskPort, name: str, media_type: str, body: bytes) -> Upload:
    blob_id = None
    for start in range(0, len(body), PIECE_BYTES):
        blob_id, _ = desk.upload(blob_id, body[start : start + PIECE_BYTES])
    assert blob_id is not None  # an empty file was refused
    return Upload(blob_id, name, media_type)


def _plain(call: Call, name: str, length: int) -> str | None:
    """A header's text; None when it is not there. Raises: PartRefused for more than plain ASCII."""
    text = call.headers.get(name.lower())
    if text is not None and not (0 < len(text) <= length and text.isascii() and text.isprintable()):
        raise PartRefused(
            "invalid_value",
            f"{name} is {text[:40]!r}; expected 1 to {length} printable ASCII characters.",
            param=name,
        )
    return text


def _headers(notice: str | None) -> dict[str, str]:
    return {NOTICE_HEADER: notice} if notice else {}


_ABOUT = (
    "The last message of the user is answered. Without a session the request is a conversation of its "
    "own: the earlier messages of user and assistant are its history, and it stays out of the list of "
    "sessions. With one (X-Fermix-Session, or metadata.session) the session keeps its own history and "
    "the earlier messages are ignored. Messages of system and developer are put before the words as "
    "instructions of the calling program. Images and files come as data URLs; addresses are not "
    "fetched. fermix acts with its own tools: tools and functions of the request are ignored, with a "
    "notice in X-Fermix-Notice and in the answer's fermix.notice. When the client leaves, a turn is "
    "stopped unless it has an Idempotency-Key or a session, by which its answer can be found again. "
    "In a stream, words that were sent cannot be taken back: when a turn begins anew after a crash "
    "and says something else, the stream ends with the error answer_begun_anew; ask again with the "
    "same Idempotency-Key for the whole answer."
)
_HEADERS = (
    Header(
        name=SESSION_HEADER,
        meaning="Continue this session of fermix; earlier messages of the request are ignored then. "
        "Names beyond ASCII go into metadata.session.",
        schema={"type": "string", "pattern": HEADER_PATTERN % 62},
    ),
    Header(
        name=KEY_HEADER,
        meaning="The same key again is the same message: it is answered once, and told again.",
        schema={"type": "string", "pattern": HEADER_PATTERN % 253},
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/models",
        summary="The models: there is one.",
        answer=_models,
        response=wire.ModelList,
        tag="openai",
        shape_error=shape,
        error=wire.OpenAIError,
    ),
    Route(
        method="GET",
        path="/v1/models/{model}",
        summary="One model.",
        answer=_model,
        response=wire.Model,
        errors=(404,),
        tag="openai",
        shape_error=shape,
        error=wire.OpenAIError,
    ),
    Route(
        method="POST",
        path="/v1/chat/completions",
        summary="Answer a chat, whole or (stream: true) as a stream of chunks.",
        answer=_chat,
        about=_ABOUT,
        request=wire.ChatRequest,
        response=wire.ChatCompletion,
        media_types=(JSON, EVENTS),
        errors=(404, 408, 409, 411, 413, 415, 429, 502, 503),
        tag="openai",
        body_limit=lambda settings: min(settings.upload_limit_bytes, REQUEST_BYTES),
        shape_error=shape,
        error=wire.OpenAIError,
        headers=_HEADERS,
    ),
)
