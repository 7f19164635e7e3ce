"""What is still to be written of a reply that a person already sees a part of.

Streamed text is provisional: after a crash or a switch of providers the daemon says `restarted`
and tells everything again. What was written cannot be unwritten, so the new telling is compared
with it and only what is new is written; where the two differ, the new one is written whole.
"""

from __future__ import annotations


class ReplyText:
    """Every method answers what to write next, often nothing."""

    def __init__(self) -> None:
        self._shown = ""
        """What stands in front of the person, since the last time two tellings differed."""
        self._told = ""
        """What the daemon told since it last began."""
        self._step = ""
        """What it told since the last tool call."""
        self._is_new_step = False
        self.tellings = 1
        """How often the reply was begun, as far as the person can see."""

    def delta(self, text: str) -> str:
        """The next piece of the visible answer."""
        if self._is_new_step and self._told:
            text = _break_after(self._told) + text
        if self._is_new_step:
            self._is_new_step = False
            self._step = ""
        self._step += text
        was_even = self._told == self._shown
        self._told += text
        if was_even:
            self._shown = self._told
            return text
        return self._catch_up()

    def step_ended(self) -> None:
        """A tool was called: what comes next is a paragraph of its own."""
        self._is_new_step = True

    def restarted(self) -> None:
        """The daemon begins to tell the turn from its start."""
        self._told = self._step = ""
        self._is_new_step = False

    def finish(self, text: str) -> str:
        """The final text of the turn, which may say more than was streamed."""
        final, told, step = _solid(text), _solid(self._told), _solid(self._step)
        if final and not told.endswith(final):
            if step and final.startswith(step):
                missing = _after_solid(text, len(step))
                self._is_new_step = False
                return self.delta(missing)
            self.step_ended()
            return self.delta(text)
        if self._told != self._shown and _solid(self._told) != _solid(self._shown):
            return self._write_whole()  # the new telling is shorter than what was shown
        return ""

    def _catch_up(self) -> str:
        """What the new telling adds to what is shown; "" while it only repeats it."""
        shown, told = _solid(self._shown), _solid(self._told)
        if shown.startswith(told):
            return ""
        if told.startswith(shown):
            if self._told.startswith(self._shown):
                new = self._told[len(self._shown) :]
            else:
                new = _after_solid(self._told, len(shown))
            self._shown = self._told
            return new
        return self._write_whole()

    def _write_whole(self) -> str:
        self.tellings += 1
        gap = _break_after(self._shown) if self._shown else ""
        self._shown = self._told
        return gap + self._told


def _break_after(text: str) -> str:
    """What makes a blank line after `text`."""
    return "\n" * max(0, 2 - (len(text) - len(text.rstrip("\n"))))


def _solid(text: str) -> str:
    """Two tellings are the same when they differ only in white space (where steps are joined)."""
    return "".join(text.split())


def _after_solid(text: str, count: int) -> str:
    """The rest of `text` after its first `count` characters that are not white space."""
    if count == 0:
        return text
    for position, char in enumerate(text):
        if not char.isspace():
            count -= 1
            if count == 0:
                return text[position + 1 :]
    return ""
