"""What is tried in a child leaves this process as it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from fermix.process.trial import succeeds_in_child
from tests.bot import CHECKOUT


def test_the_answer_of_the_child_comes_back_and_its_changes_do_not() -> None:
    here = Path.cwd()

    assert succeeds_in_child(lambda: os.chdir("/") is None and Path.cwd() == Path("/"))
    assert not succeeds_in_child(lambda: False)
    assert Path.cwd() == here


def test_a_child_that_does_not_end_counts_as_failed() -> None:
    assert not succeeds_in_child(lambda: signal.pause() is None)


def test_a_try_that_raises_fails_and_its_child_goes_no_further(tmp_path: Path) -> None:
    mark = tmp_path / "went on"
    program = (
        "from pathlib import Path; from fermix.process.trial import succeeds_in_child\n"
        "try:\n    print(succeeds_in_child(lambda: {}['no such call']))\n"
        f"except KeyError:\n    Path({str(mark)!r}).touch()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"
    assert not mark.exists()
