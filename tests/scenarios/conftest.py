"""A bot shared by the tests that only look at it."""

from collections.abc import Iterator

import pytest

from tests.bot import Bot, running


@pytest.fixture(scope="module")
def bot_that_echoes() -> Iterator[Bot]:
    with running({"rules": [{"when": "", "then": [{"say": "You said: {text}"}]}]}) as bot:
        yield bot
