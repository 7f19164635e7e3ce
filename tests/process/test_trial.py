"""What is tried in a child leaves this process as it is."""

from __future__ import annotations

import os
import time
from pathlib import Path

from fermix.process.trial import succeeds_in_child


def test_the_answer_of_the_child_comes_back_and_its_changes_do_not() -> None:
    here = Path.cwd()

    assert succeeds_in_child(lambda: os.chdir("/") is None and Path.cwd() == Path("/"))
    assert not succeeds_in_child(lambda: False)
    assert Path.cwd() == here


def test_a_child_that_does_not_end_counts_as_failed() -> None:
    assert not succeeds_in_child(lambda: time.sleep(60) is None)
