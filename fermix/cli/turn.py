"""Follows a turn for a person who may press Ctrl-C or set a time."""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any, Protocol

from fermix.errors import DeadlineExceeded, FermixError, OwnerError
from fermix.ipc.client import Event, Result
from fermix.ipc.following import TurnWatch

PATIENCE_S = 60.0
"""How long a turn is waited for while the daemon is away."""

_TICK_S = 0.1
_CANCEL_WAIT_S = 5.0
"""How long a cancelled turn may take to end before the person is let go."""


class TurnView(Protocol):
    """Who shows a turn."""

    def show(self, event: Event) -> None:
        """The next event of the turn."""
        ...

    def tick(self, is_connected: bool) -> None:
        """Nothing came for a moment; False while the daemon is away."""
        ...


class Interrupts:
    """Counts Ctrl-C instead of raising; the second one raises KeyboardInterrupt after all."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Interrupts:
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt


def follow(
    watch: TurnWatch,
    view: TurnView,
    interrupts: Interrupts,
    *,
    deadline: float | None,
    timeout_s: float | None = None,
) -> dict[str, Any]:
    """The result of the turn, cancelled ones included.

    deadline: monotonic second at which the turn is cancelled; None to wait for its end.
    timeout_s: what the person wrote for it, to be named when it is over.
    Raises: DeadlineExceeded after the deadline, KeyboardInterrupt when a cancelled turn does not
    end, and what the daemon refuses.
    """
    stopping = _Stopping(watch, timeout_s)
    while True:
        answer = watch.read(_TICK_S)
        if isinstance(answer, Result):
            if stopping.is_late:
                raise stopping.too_late()
            return answer.data
        if answer is not None:
            view.show(answer)
        else:
            view.tick(watch.is_connected)
        stopping.look(interrupts.count > 0, deadline is not None and time.monotonic() >= deadline)


class _Stopping:
    """Asks the daemon once to cancel, then gives it a little time."""

    def __init__(self, watch: TurnWatch, timeout_s: float | None) -> None:
        self._watch = watch
        self._timeout_s = timeout_s
        self._since: float | None = None
        self._is_sent = False
        self.is_late = False

    def look(self, is_interrupted: bool, is_late: bool) -> None:
        now = time.monotonic()
        if self._since is None and (is_interrupted or is_late):
            self._since, self.is_late = now, is_late
        if self._since is None:
            return
        if not self._is_sent and self._watch.turn_id is not None:
            try:
                self._watch.cancel()
                self._is_sent = True
            except FermixError:
                pass  # the daemon is away; the next look tries again
        if now - self._since > _CANCEL_WAIT_S:
            if self.is_late:
                raise self.too_late()
            raise KeyboardInterrupt

    def too_late(self) -> DeadlineExceeded:
        within = "" if self._timeout_s is None else f" within {self._timeout_s:g} s"
        what = "the turn was cancelled" if self._is_sent else "the message may not have arrived"
        return DeadlineExceeded(f"No whole answer{within}; {what}.", hint="a longer --timeout, or none")


def answer_of(result: dict[str, Any]) -> str:
    """The text of the reply, without the reason that `check_completed` raises: nobody reads it twice,
    and no script takes it for an answer.
    """
    text, failure = str(result.get("text") or ""), _failure(result)
    return text if failure is None else text.removesuffix(failure.message).rstrip()


def check_completed(result: dict[str, Any]) -> None:
    """Raise what ended a turn that did not complete.

    Raises: OwnerError with the daemon's code, message and hint.
    """
    failure = _failure(result)
    if failure is not None:
        raise failure


def _failure(result: dict[str, Any]) -> OwnerError | None:
    status = str(result.get("status") or "completed")
    if status == "completed":
        return None
    error = result.get("error")
    details = error if isinstance(error, dict) else {}
    message = str(details.get("message") or f"The turn was {status}.")
    hint = details.get("hint")
    told = OwnerError(message, hint=str(hint) if hint else None)
    told.code = str(details.get("code") or f"turn_{status}")
    return told
