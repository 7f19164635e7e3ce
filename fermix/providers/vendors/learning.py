"""A vendor's model that learns from the vendor's own list; never on the way of a question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import msgspec

from fermix.errors import DeadlineExceeded, FermixError
from fermix.net.door import OwnerDoor
from fermix.providers.apis.wire import Route
from fermix.providers.client import HttpProvider
from fermix.providers.learned import Kept, Learned, keep, recall
from fermix.providers.model_lists import read_listed, read_shown
from fermix.providers.port import ModelLimits, ModelRequest, Price, StreamEvent
from fermix.providers.vendors.spec import VendorSpec
from fermix.providers.vendors.vendor import Parts
from fermix.tasks import Cancel, Deadline, TaskGroup

log = logging.getLogger(__name__)

SAFE_WINDOW_TOKENS = 32_768
"""Taken for a model nobody told anything of: more than instructions and tools need, and few have less."""
_FRESH_MS = 24 * 3600 * 1000
_TRY_AGAIN_S = 600.0
_READ_S = 20.0
_WRITE_S = 10.0
_LIMIT_BYTES = 8 * 1024 * 1024


class ListReader:
    """Asks the server what it has."""

    def __init__(
        self, door: OwnerDoor, headers: Callable[[], dict[str, str]], spec: VendorSpec, model: str
    ) -> None:
        self._door = door
        self._headers = headers
        self._spec = spec
        self._model = model

    def read(self, *, today: str) -> Learned | None:
        """What it says of the model; None when it says nothing.

        Raises: NetworkError, DeadlineExceeded, SecretMissing.
        """
        shows = self._spec.shows_path
        response = self._door.send(
            "POST" if shows else "GET",
            shows or self._spec.list_path,
            msgspec.json.encode({"model": self._model}) if shows else None,
            headers={**self._headers(), "Accept": "application/json"},
            cancel=Cancel(),
            deadline=Deadline.after(_READ_S),
            idle_timeout_s=_READ_S,
            limit_bytes=_LIMIT_BYTES,
        )
        with response:
            body = response.read_all()
            if response.status != 200:
                return None
        return read_shown(body) if shows else read_listed(body, self._model, today=today)


class LearningProvider:
    """One model behind one address; what its list says counts from the question after it was read on."""

    def __init__(
        self,
        http: HttpProvider,
        route: Callable[[Learned], Route],
        reader: ListReader,
        *,
        unknown: Callable[[Learned], str | None],
        base_url: str,
        parts: Parts,
    ) -> None:
        """`route` gives how to ask with what was learned, `unknown` what to say of what is missing."""
        self.name = http.name
        self.model = http.model
        self._http = http
        self._route = route
        self._unknown = unknown
        self._reader = reader
        self._base_url = base_url
        self._parts = parts
        self._tasks = TaskGroup(f"list of {http.name}")
        self._tried_s: float | None = None
        """When the list was last asked for; None when it was not."""
        self._learned = Learned()
        kept = recall(parts.home, self.name, base_url=base_url, model=self.model)
        self._read_ms = kept.read_ms if kept else 0
        if kept is not None:
            self._learn(kept.learned)

    @property
    def limits(self) -> ModelLimits:
        return self._http.limits

    @property
    def price(self) -> Price | None:
        return self._http.price

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """See `Provider.stream`."""
        self._look()
        return self._http.stream(request)

    def notice(self) -> str | None:
        """What is not known of the model, once its list was asked for."""
        is_asked = self._read_ms > 0 or self._tried_s is not None
        return self._unknown(self._learned) if is_asked and not len(self._tasks) else None

    def stop(self, timeout_s: float) -> None:
        """End what is still asked and the kept connections."""
        self._tasks.stop(timeout_s)
        self._http.stop(timeout_s)

    def _look(self) -> None:
        """Have the list read when it is old; a failure is tried again after ten minutes."""
        now_s = self._parts.clock.monotonic_s()
        was_tried = self._tried_s is not None and now_s - self._tried_s < _TRY_AGAIN_S
        if was_tried or self._parts.clock.now_ms() - self._read_ms < _FRESH_MS:
            return
        self._tried_s = now_s
        self._tasks.start(self._refresh, name="read")

    def _refresh(self) -> None:
        now_ms = self._parts.clock.now_ms()
        today = datetime.fromtimestamp(now_ms / 1000, UTC).date().isoformat()
        try:
            learned = self._reader.read(today=today)
        except FermixError as error:
            log.info("What %s has is not known: %s", self.name, error.message)
            return
        self._read_ms = now_ms
        self._learn(learned or Learned())
        kept = Kept(self._learned, now_ms)
        write = partial(keep, self._parts.home, self.name, kept, base_url=self._base_url, model=self.model)
        try:
            self._parts.pool.run(write, timeout_s=_WRITE_S)
        except DeadlineExceeded:
            log.info("What %s has is not written down: the disk takes too long", self.name)

    def _learn(self, learned: Learned) -> None:
        self._learned = learned
        self._http.take(self._route(learned))
