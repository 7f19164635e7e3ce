"""[runtime]: how hangs, deaths and stops are dealt with."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator

import pytest

from fermix.daemon.restarts import RestartPauses
from tests.bot import Bot, Model, wait_for
from tests.daemon.conftest import StubDaemon, until
from tests.settings.conftest import HANGING, Lab

BLOCKED = "The hub did not turn"


def block(*seconds: int) -> dict[str, object]:
    """Have the hub blocked so long, one after the other."""
    calls = [{"tool_calls": [{"name": "block_hub", "arguments": {"seconds": each}}]} for each in seconds]
    return {"rules": [{"when": "", "then": [*calls, {"say": "done"}]}]}


def test_blocked_hub_is_logged_after_the_time_the_setting_says(lab: Lab) -> None:
    lab.model.script(block(1))
    lab.put(runtime={"hub_blocked_log_ms": 10_000})
    lab.say()  # the beat that was on its way goes by the setting before
    before = lab.bot.log_text().count(BLOCKED)

    lab.say()
    patient = lab.bot.log_text().count(BLOCKED)
    lab.put(runtime={"hub_blocked_log_ms": 200})
    lab.say()
    lab.say()

    assert patient == before
    wait_for("the log to say it", lambda: lab.bot.log_text().count(BLOCKED) > before)


def test_blocked_worker_is_killed_after_the_time_the_setting_says(lab: Lab) -> None:
    lab.model.script(block(1, 4))
    worker = lab.bot.worker
    lab.put(runtime={"hub_killed_s": 1.5, "hub_blocked_log_ms": 10_000})

    lab.begin()

    # With the default of 15 s it would have come back by itself.
    wait_for("another worker", lambda: f"Worker {worker} did not beat" in lab.bot.log_text(), 15.0)
    wait_for("it to be ready", lab.bot.is_ready)
    assert lab.bot.worker != worker


def test_pauses_are_made_after_as_many_restarts_as_the_setting_says(lab: Lab) -> None:
    lab.put(runtime={"restarts": 1, "restart_window_s": 600.0})
    before = lab.bot.log_text().count("Workers keep dying")

    for _ in range(2):
        worker = lab.bot.worker
        lab.bot.kill(worker)
        wait_for("the next worker", lab.bot.is_ready)

    assert lab.bot.log_text().count("Workers keep dying") > before


@pytest.mark.parametrize(("window_s", "has_pause"), [(60.0, True), (5.0, False)])
def test_restarts_count_for_the_time_the_setting_says(window_s: float, has_pause: bool) -> None:
    pauses = RestartPauses(limit=9, window_s=9.0)
    pauses.limit(1, window_s)

    pauses.after_death(100.0, was_ready=True)

    assert (pauses.after_death(110.0, was_ready=True) > 0) is has_pause


@pytest.mark.parametrize(("drain_s", "is_handed_back"), [(30.0, False), (0.2, True)])
def test_running_turns_get_the_time_to_end_that_the_setting_says(
    drain_s: float, is_handed_back: bool
) -> None:
    slow = {"rules": [{"when": "", "then": [{"say": "x" * 15, "chunks": 15, "delay_ms": 100}]}]}
    model = Model(HANGING if is_handed_back else slow)
    bot = Bot(model, config="[runtime]\ndrain_s = 10.0\n")
    try:
        bot.start()
        config = bot.home / "config.toml"
        config.write_text(config.read_text().replace("drain_s = 10.0", f"drain_s = {drain_s}"))
        with bot.connect() as connection:
            assert connection.call("reload", {}, 10.0)["applied"] == ["runtime.drain_s"]
            connection.stream("message", {"text": "hi", "client_id": "0" * 26}, 10.0).read(10.0)
            wait_for("the turn to run", lambda: bot.status()["turns"]["running"] == 1)
            os.kill(bot.arbiter, signal.SIGTERM)
            bot._processes[0].wait(20)

        assert f"Draining for up to {drain_s:g} s" in bot.log_text()
        assert ("Handing 1 running turns back" in bot.log_text()) is is_handed_back
    finally:
        bot.close()
        model.close()


@pytest.fixture
def daemon() -> Iterator[StubDaemon]:
    """A daemon whose runtime is a stub."""
    stub = StubDaemon()
    yield stub
    stub.end()


@pytest.mark.parametrize(("stop_s", "is_cut"), [(10.0, False), (0.3, True)])
def test_parts_get_the_time_to_stop_that_the_setting_says(
    daemon: StubDaemon, stop_s: float, is_cut: bool
) -> None:
    process = daemon.start("slowstop")
    daemon.configure(runtime={"stop_s": stop_s, "drain_s": 0.5})

    process.send_signal(signal.SIGHUP)
    until(lambda: "Settings applied: runtime.drain_s, runtime.stop_s" in daemon.log())
    process.terminate()
    process.wait(20)

    assert ("stopped" in daemon.diary()) is not is_cut


def test_start_waits_for_the_rest_of_a_killed_daemon_as_long_as_the_setting_says(
    daemon: StubDaemon,
) -> None:
    path = daemon.home / "run.lock"
    path.write_text("999999999 full 1\n")
    path.chmod(0o600)
    leftover = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(leftover, fcntl.LOCK_EX)

    daemon.configure(runtime={"lease_wait_s": 0.0})
    refused = daemon.spawn()
    refused.wait(15)
    daemon.configure(runtime={"lease_wait_s": 60.0})
    daemon.spawn()
    os.close(leftover)

    until(daemon.ping)
    assert refused.returncode == 1
