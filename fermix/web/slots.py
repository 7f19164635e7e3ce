"""How many answers may be waited for at once."""

from __future__ import annotations

from fermix.web.refusals import Refused


class Slots:
    """The connections that turns hold open; one per process."""

    def __init__(self) -> None:
        self.taken = 0


class Slot:
    """The right to hold one connection open while a turn goes on."""

    def __init__(self, slots: Slots, limit: int) -> None:
        """Raises: Refused when `limit` are taken."""
        if slots.taken >= limit:
            raise Refused(
                429, "too_many_streams", f"{slots.taken} answers are being waited for, the most at once."
            )
        slots.taken += 1
        self._slots: Slots | None = slots

    def free(self) -> None:
        """Give it back; harmless when done twice."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.taken -= 1
