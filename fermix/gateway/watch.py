"""The numbered events of each turn, kept so that a watcher who left can come back and miss nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sys import getsizeof

from gevent.event import Event

from fermix.secrets import Redactor, StreamRedactor

LIFE = 1_000_000
"""A turn's second life numbers its events from twice this, its third from three times."""
LAST_SEQ = 1 << 53
"""The largest number of an event: the largest whole number that every JSON reader keeps."""
KEPT_TURNS = 128
"""Turns that are over and still replayed from memory; older ones are replayed from their rows."""
KEPT_WEIGHT = 8_000_000
"""Bytes that all those turns together take, about; the oldest are let go first."""
EVENT_WEIGHT = 400
JOINED = ("text_delta", "reasoning_delta")
JOINED_LENGTH = 16_384
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One thing that happened in a turn, with its place in the order."""

    seq: int
    name: str
    data: dict[str, object]


def first_seq(life: int) -> int:
    """The number the first event of a turn's life gets; lives count from 1."""
    return 1 if life <= 1 else life * LIFE


class TurnLog:
    """The events of one turn in one life of the daemon; any number may follow it, each at its own pace."""

    def __init__(self, turn_id: str, redactor: Redactor | None = None) -> None:
        """Without a redactor everything is published as it is."""
        self.turn_id = turn_id
        self._redactor = redactor
        self._streams = {name: StreamRedactor(redactor) for name in JOINED} if redactor else {}
        self.is_over = False
        self.ending: Mapping[str, object] = {}
        """The data of `done`, once the turn is over."""
        self._events: list[TurnEvent] = []
        self._next_seq = 1
        self._handed = 0
        """How many events the quickest watcher was given."""
        self._changed = Event()
        self.weight = 0
        """About how many bytes the events take."""

    def start_life(self, life: int) -> None:
        """Number the events to come as this life's."""
        self._next_seq = max(self._next_seq, first_seq(life))

    def start_after(self, seq: int) -> None:
        """Number the events to come above `seq`."""
        self._next_seq = max(self._next_seq, seq + 1)

    def publish(self, name: str, /, **data: object) -> None:
        """Add an event without the secrets in it; `done` is the last one.

        Words that no watcher was handed yet are joined: who is slow or away gets fewer, longer pieces.
        Words that may begin a secret come with the next ones, or before the next event of another kind.
        """
        if self._redactor is not None:
            for other, stream in self._streams.items():
                if name == "restarted":
                    stream.drop()
                elif other != name and (rest := stream.finish()):
                    self._add(other, {"text": rest})
            if name in self._streams:
                data["text"] = self._streams[name].feed(str(data["text"]))
                if not data["text"]:
                    return
            elif name != "tool_result":  # redacted where the tool ran
                data = {key: self._cleared(value) for key, value in data.items()}
        self._add(name, data)

    def _add(self, name: str, data: dict[str, object]) -> None:
        if not self._is_joined(name, data):
            self._events.append(TurnEvent(self._next_seq, name, data))
            self._next_seq += 1
            self.weight += EVENT_WEIGHT
            self.weight += sum(getsizeof(value) for value in data.values() if isinstance(value, str))
        if name == "done":
            self.is_over = True
            self.ending = data
        changed, self._changed = self._changed, Event()
        changed.set()

    def follow(self, after_seq: int) -> Iterator[TurnEvent]:
        """Events numbered above `after_seq` as they come, until the turn is over."""
        for event in self.watch(after_seq, WAIT_S):
            if event is not None:
                yield event

    def watch(self, after_seq: int, quiet_s: float) -> Iterator[TurnEvent | None]:
        """As `follow`, and None whenever nothing has come for `quiet_s`."""
        index = 0
        while True:
            while index < len(self._events):
                event = self._events[index]
                index += 1
                self._handed = max(self._handed, index)
                if event.seq > after_seq:
                    yield event
            if self.is_over:
                return
            if not self._changed.wait(quiet_s):
                yield None

    def _cleared(self, value: object) -> object:
        """The value with every text in it redacted."""
        if isinstance(value, str):
            return self._redactor.redact(value) if self._redactor is not None else value
        if isinstance(value, dict):
            return {key: self._cleared(each) for key, each in value.items()}
        return [self._cleared(each) for each in value] if isinstance(value, list) else value

    def _is_joined(self, name: str, data: dict[str, object]) -> bool:
        """Whether these words could be added to the last event."""
        if name not in JOINED or len(self._events) <= self._handed or self._events[-1].name != name:
            return False
        last = self._events[-1]
        text = f"{last.data['text']}{data['text']}"
        if len(text) > JOINED_LENGTH:
            return False
        self._events[-1] = TurnEvent(last.seq, name, {"text": text})
        self.weight += getsizeof(text) - getsizeof(last.data["text"])
        return True


class Watch:
    """The logs of all turns that run, wait or ended lately."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor
        self._open: dict[str, TurnLog] = {}
        self._over: OrderedDict[str, TurnLog] = OrderedDict()
        self._kept_weight = 0

    def log_of(self, turn_id: str) -> TurnLog:
        """The turn's log, begun now if there is none."""
        log = self.find(turn_id)
        if log is None:
            log = self._open[turn_id] = TurnLog(turn_id, self._redactor)
        return log

    def find(self, turn_id: str) -> TurnLog | None:
        """The turn's log; None when the turn is not of this life or over for long."""
        return self._open.get(turn_id) or self._over.get(turn_id)

    def close(self, turn_id: str) -> None:
        """The turn is over: keep its log a while for those who come back."""
        log = self._open.pop(turn_id, None)
        if log is not None:
            self._over[turn_id] = log
            self._kept_weight += log.weight
            while len(self._over) > KEPT_TURNS or self._kept_weight > KEPT_WEIGHT:
                _, oldest = self._over.popitem(last=False)
                self._kept_weight -= oldest.weight

    def forget(self, turn_id: str) -> None:
        """Drop the log of a turn whose words were deleted; who follows it still reads its end."""
        self._open.pop(turn_id, None)
        log = self._over.pop(turn_id, None)
        if log is not None:
            self._kept_weight -= log.weight
