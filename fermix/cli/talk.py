"""The daemon's side of a chat: one message at a time, each followed to the end of its turn."""

from __future__ import annotations

import contextlib
from typing import Any

from fermix.cli.ask import AskView, acknowledge
from fermix.cli.door import Door
from fermix.cli.outgoing import message
from fermix.cli.turn import PATIENCE_S, Interrupts, check_completed, follow
from fermix.ipc.following import TurnWatch

LEAVING = ("/quit", "/exit")
_EARLIER_MESSAGES = 6
_TIMEOUT_S = 10.0


class Talk:
    """A conversation with the daemon, whatever shows it."""

    def __init__(
        self, door: Door, session: str, *, model: str | None = None, effort: str | None = None
    ) -> None:
        """`model` and `effort` are asked for with each message; None leaves them to the settings."""
        self._door = door
        self._model = model
        self._effort = effort
        self.session = session

    def earlier(self) -> list[dict[str, Any]]:
        """The last messages of the session, oldest first; also starts the daemon when none runs."""
        params = {"session": self.session, "limit": _EARLIER_MESSAGES}
        with self._door.open() as connection:
            messages = connection.call("sessions.messages", params, _TIMEOUT_S).get("messages")
        return [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []

    def send(self, text: str, view: AskView) -> bool:
        """Send a message and show its turn; whether it completed, False when Ctrl-C cancelled it.

        Raises: KeyboardInterrupt at the second Ctrl-C, OwnerError when the turn did not complete.
        """
        params = message(text, self.session, [], model=self._model, effort=self._effort)
        watch = TurnWatch(self._door.open, params, patience_s=PATIENCE_S)
        with contextlib.closing(watch), Interrupts() as interrupts:
            try:
                result = follow(watch, view, interrupts, deadline=None)
            except BaseException:
                view.close()
                raise
            is_stopped = interrupts.count > 0 and result.get("status") == "cancelled"
            if is_stopped:
                view.close()
            else:
                view.finish(result)
            acknowledge(watch)
        if not is_stopped:
            check_completed(result)
        return not is_stopped
