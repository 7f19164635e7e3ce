"""Helpers: ready before they are used, heard, and ended with all they started."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from fermix.errors import HelperFailed
from fermix.process import GroupLedger, Helper, HelperSpec, Limits
from tests.process.survivors import await_none, await_some, marked


def spec(script: str, mark: str, **fields: object) -> HelperSpec:
    given = {
        "name": "echo",
        "argv": ("/bin/sh", "-c", script),
        "environment": {"PATH": os.defpath, "TEST_MARK": mark},
        "cwd": Path("/"),
        "grace_s": 0.3,
        **fields,
    }
    return HelperSpec(**given)


def test_a_helper_is_used_only_once_it_is_ready(ledger: GroupLedger, mark: str, tmp_path: Path) -> None:
    sign = tmp_path / "ready"

    helper = Helper(spec(f"sleep 0.3; touch {sign}; exec sleep 60", mark, is_ready=sign.exists), ledger)

    assert sign.exists()
    assert not helper.wait(0.05)
    helper.stop(5)
    assert helper.wait(0)


def test_a_helper_that_ends_before_it_is_ready_says_its_last_words(ledger: GroupLedger, mark: str) -> None:
    with pytest.raises(HelperFailed, match=r"ended with code 3\. It said: no model here"):
        Helper(spec("echo no model here; exit 3", mark, is_ready=lambda: False), ledger)

    assert len(ledger) == 0


def test_a_helper_that_is_not_ready_in_time_is_ended(ledger: GroupLedger, mark: str) -> None:
    with pytest.raises(HelperFailed, match=r"not ready after 0\.2 s"):
        Helper(
            spec("trap '' TERM; sleep 60; sleep 60", mark, is_ready=lambda: False, ready_timeout_s=0.2),
            ledger,
        )

    assert not marked(mark)


def test_a_helper_that_cannot_start_names_the_program(ledger: GroupLedger, mark: str) -> None:
    with pytest.raises(HelperFailed, match="/no/such/helper"):
        Helper(spec("", mark, argv=("/no/such/helper",)), ledger)


def test_stop_ends_all_a_helper_started(ledger: GroupLedger, mark: str) -> None:
    script = "trap '' TERM; setsid sleep 60 & sleep 61 & while :; do sleep 1; done"
    helper = Helper(spec(script, mark), ledger)
    await_some(mark, 4)

    helper.stop(5)

    assert not marked(mark)
    assert len(ledger) == 0


def test_an_unexpected_end_is_a_failure(ledger: GroupLedger, mark: str) -> None:
    helper = Helper(spec("sleep 0.2; echo gone; kill -9 $$", mark), ledger)

    with pytest.raises(HelperFailed, match=r"code -9\. It said: gone"):
        helper.wait(5)


def test_its_lines_go_to_the_log(
    ledger: GroupLedger, mark: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="fermix.process.helper")
    said = tmp_path / "said"
    script = f"echo one; printf 'two\\377'; touch {said}; exec sleep 60"
    helper = Helper(spec(script, mark, is_ready=said.exists), ledger)

    helper.stop(5)

    assert helper.last_words() == "one\ntwo�"
    assert [record.getMessage() for record in caplog.records] == ["echo: one", "echo: two�"]


def test_a_helper_that_floods_its_log_keeps_running_in_little_memory(
    ledger: GroupLedger, mark: str, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    script = f"yes | tr -d '\\n' | head -c 20000000; touch {said}; exec sleep 60"
    helper = Helper(spec(script, mark, is_ready=said.exists), ledger)

    assert not helper.wait(0)
    assert len(helper.last_words()) < 50_000
    helper.stop(5)


def test_a_helper_has_low_priority_when_asked(ledger: GroupLedger, mark: str, tmp_path: Path) -> None:
    sign = tmp_path / "nice"
    script = f"nice > {sign}.new; mv {sign}.new {sign}; exec sleep 60"
    helper = Helper(spec(script, mark, is_ready=sign.exists, limits=Limits(nice=10)), ledger)

    assert sign.read_text() == "10\n"
    helper.stop(5)


def test_a_passed_descriptor_keeps_its_number(ledger: GroupLedger, mark: str) -> None:
    read_end, write_end = os.pipe()
    code = f"import os; os.write({write_end}, b'hello'); os.close({write_end}); import time; time.sleep(60)"
    argv = (sys.executable, "-S", "-E", "-c", code)

    helper = Helper(spec("", mark, argv=argv, pass_fds=(write_end,)), ledger)

    os.close(write_end)
    assert os.read(read_end, 100) == b"hello"
    os.close(read_end)
    helper.stop(5)
    await_none(mark)
