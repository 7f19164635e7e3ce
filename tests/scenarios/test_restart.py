"""Killed in any state, by any victim: the message is answered once and no tool call runs twice."""

from __future__ import annotations

import pytest

from tests.states import AFTER_THE_REPLY, BEFORE_THE_REPLY, VICTIMS, kill_in_state


@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("state", [*BEFORE_THE_REPLY, *AFTER_THE_REPLY])
def test_message_is_answered_once_after_a_kill(state: str, victim: str) -> None:
    kill_in_state(state, victim)
