"""Random kills, stops and cancels around messages: each has one honest end, and nothing ran twice."""

from __future__ import annotations

import pytest

from tests.sequences import live


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 8])
def test_every_message_of_a_random_life_has_one_honest_end(seed: int) -> None:
    live(seed)
