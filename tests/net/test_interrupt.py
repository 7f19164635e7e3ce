"""A block that waits is ended when its time is over."""

from __future__ import annotations

import gevent
import pytest

from fermix.errors import DeadlineExceeded
from fermix.net.interrupt import interruptible
from fermix.tasks import Cancel


@pytest.mark.parametrize(("seconds", "told"), [(1.0041, "1 s"), (0.0123456, "0.012 s")])
def test_time_that_is_over_is_told_as_people_say_it(seconds: float, told: str) -> None:
    with pytest.raises(DeadlineExceeded) as over, interruptible(Cancel(), seconds, what="The first word"):
        gevent.sleep(10)

    assert over.value.message == f"The first word took longer than {told}."
