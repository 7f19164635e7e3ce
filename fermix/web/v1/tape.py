"""What is new in a turn's words for a reader whose wire cannot take words back."""

from __future__ import annotations

from fermix.gateway.watch import TurnEvent

STEP_GAP = "\n\n"
"""Between what the model says before a tool call and what it says after it."""


class Tape:
    """The words of a turn in order, against those already sent."""

    def __init__(self) -> None:
        self._sent: list[str] = []
        self._again: str | None = None
        """While the turn is told again: all that was sent; None while what it says is new."""
        self._place = 0
        """How far of it was told again."""
        self._step: list[str] = []
        """What was said since the last tool call."""
        self._is_new_step = False

    def hear(self, event: TurnEvent) -> str | None:
        """What to send for this event, often ""; None when it differs from what was sent."""
        if event.name == "text_delta":
            return self._say(str(event.data["text"]))
        if event.name == "correction":
            self._is_new_step = True
            return self._say(str(event.data["text"]))
        if event.name == "restarted":
            self._again, self._place = "".join(self._sent), 0
            self._step, self._is_new_step = [], False
        elif event.name.startswith("tool_"):
            self._is_new_step = True
        return ""

    def finish(self, text: str) -> str | None:
        """What of the final text was not sent yet; None when it differs from what was sent."""
        step = "".join(self._step)
        if self._is_new_step or not step:
            rest = text
        elif text.startswith(step):
            rest = text[len(step) :]
        else:
            rest = ""  # the stored text was redacted or corrected; the stream had its own
        piece = self._say(rest) if rest else ""
        if piece is not None and self._again is not None and self._place < len(self._again):
            return None  # the new telling is shorter
        return piece

    def _say(self, text: str) -> str | None:
        if not self._is_new_step:
            self._step.append(text)
            return self._new_of(text)
        self._is_new_step, self._step = False, [text]
        has_spoken = bool(self._sent) if self._again is None else self._place > 0
        return self._new_of(STEP_GAP + text if has_spoken else text)

    def _new_of(self, text: str) -> str | None:
        """The part of `text` that goes beyond what was sent."""
        if self._again is not None:
            repeated = self._again[self._place : self._place + len(text)]
            if not text.startswith(repeated):
                return None
            self._place += len(repeated)
            text = text[len(repeated) :]
            if self._place < len(self._again):
                return ""
            if text:
                self._again = None
        if text:
            self._sent.append(text)
        return text
