"""`fermix doctor`: what is wrong here, and with --fix a hand with it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from fermix import __version__
from fermix.cli.door import Door
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.service_target import find_service
from fermix.cli.terminal import escaped, paint, takes
from fermix.cli.waiting import Waiting
from fermix.clock import SystemClock
from fermix.config.decoding import decode
from fermix.config.source import parse_source
from fermix.daemon.sections import SCHEMA, find_problems, load_settings, user_home
from fermix.errors import ConfigError, FermixError, NotRunning
from fermix.ipc.client import open_connection
from fermix.paths import Home
from fermix.process.program import own_command
from fermix.setup.doctor.checks import Outcome, examine
from fermix.setup.doctor.finding import Finding, State
from fermix.setup.doctor.scene import Call, Scene, Wanted

_STATUS_S = 5.0
_CALL_S = 120.0
"""A provider may take long to answer, a local model to load."""
_TICK_S = 0.1
_MARKS = {State.OK: "✓", State.WARN: "!", State.FAIL: "✗", State.SKIPPED: "-"}
_PLAIN_MARKS = {State.OK: "ok", State.WARN: "! ", State.FAIL: "x ", State.SKIPPED: "- "}
_STYLES = {State.OK: "green", State.WARN: "yellow", State.FAIL: "red", State.SKIPPED: "dim"}


@click.command(epilog=examples("fermix doctor", "fermix doctor --fix", "fermix doctor --full --json"))
@click.option(
    "--full", "is_full", is_flag=True, help="Take the time: whole database, provider without a daemon too."
)
@click.option("--fix", "repairs", is_flag=True, help="Repair what loses nothing; say what was done.")
@json_option
@click.pass_context
def command(context: click.Context, is_full: bool, repairs: bool, as_json: bool) -> None:
    """Look at everything fermix rests on and say what is wrong, with the command that repairs it.

    Exit status 1 when something failed. What needs a decision is only named, never done.
    """
    scene = scene_of(own_home(), os.environ, is_full=is_full)
    outcomes = []
    with Ticking(is_silent=as_json) as ticking:
        for outcome in examine(scene, repairs=repairs, begin=ticking.restart):
            ticking.pause()
            outcomes.append(outcome)
            if not as_json:
                _print(outcome)
    facts = summary(outcomes)
    if as_json:
        print_json(facts)
    else:
        _print_end(facts, outcomes)
    if facts["failed"]:
        context.exit(1)


def scene_of(home: Home, environment: Mapping[str, str], *, is_full: bool) -> Scene:
    """The examination of this home; asks a daemon that runs how it is, and starts none."""
    status, silence = _status(home)
    door = Door(home, starts_private=True, is_silent=True)  # the check's own sign of life is shown
    return Scene(
        home=home,
        environment=environment,
        clock=SystemClock(),
        version=__version__,
        command=own_command(environment),
        is_full=is_full,
        problems=lambda: find_problems(home, environment),
        problems_in=lambda raw: _problems_in(home, environment, raw),
        wanted=lambda: _wanted(home, environment),
        http_problem=lambda: _http_problem(home, environment),
        service=lambda: find_service(None, home.root, Path("/")),
        status=status,
        call=None if status is None else _caller(lambda: open_connection(home.socket)),
        silence=silence,
        start=(lambda: _caller(door.open)) if is_full else None,
    )


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """For --json."""
    findings = [_facts(each) for outcome in outcomes for each in outcome.findings]
    return {
        "findings": findings,
        "failed": sum(each["state"] == State.FAIL for each in findings),
        "fixed": sum(len(outcome.done) for outcome in outcomes),
        "done": [{"check": outcome.check, "what": done} for outcome in outcomes for done in outcome.done],
        "refused": [
            {"check": outcome.check, "why": why} for outcome in outcomes for why in outcome.refused
        ],
    }


def _facts(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "state": finding.state.value,
        "saw": finding.saw,
        "hint": finding.hint,
        "fixable": finding.fix is not None,
    }


def _status(home: Home) -> tuple[dict[str, Any] | None, FermixError | None]:
    """What the daemon says; None and why, when one is there that does not."""
    try:
        with open_connection(home.socket, timeout_s=_STATUS_S) as connection:
            return connection.call("status", {}, _STATUS_S), None
    except NotRunning:
        return None, None
    except FermixError as error:
        return None, error


def _caller(open_one: Callable[[], Any]) -> Call:
    def call(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        with open_one() as connection:
            answer: Mapping[str, Any] = connection.call(method, dict(params), _CALL_S)
            return answer

    return call


def _problems_in(home: Home, environment: Mapping[str, str], raw: bytes) -> list[ConfigError]:
    try:
        source = parse_source(home.config, raw)
    except ConfigError as error:
        return [error]
    return decode(SCHEMA, source, user_home=user_home(environment)).problems


def _wanted(home: Home, environment: Mapping[str, str]) -> Wanted | None:
    try:
        settings = load_settings(home, environment)
    except ConfigError:
        return None
    return Wanted(
        http_enabled=settings.http.enabled,
        http_host=settings.http.host,
        http_port=settings.http.port,
        provider=settings.provider.name,
        model=settings.provider.model,
        wal_limit_bytes=settings.database.wal_limit_bytes,
    )


def _http_problem(home: Home, environment: Mapping[str, str]) -> FermixError | None:
    from fermix.auth.devices import DeviceTokens  # both take a while to import
    from fermix.web.exposure import problem

    try:
        settings = load_settings(home, environment).http
    except ConfigError:  # told by the check of config.toml
        return None
    try:
        return problem(settings, device_tokens=len(DeviceTokens(home.tokens).all()))
    except ConfigError as error:
        return error


def _print(outcome: Outcome) -> None:
    for done in outcome.done:
        print(f"  {paint('fixed', 'green', sys.stdout)}: {escaped(done)}")
    for why in outcome.refused:
        print(f"  {paint('not fixed', 'red', sys.stdout)}: {escaped(why)}")
    marks = _MARKS if takes(sys.stdout, "✓✗") else _PLAIN_MARKS
    for each in outcome.findings:
        mark = paint(marks[each.state], _STYLES[each.state], sys.stdout)
        print(f"{mark} {each.check:<9} {escaped(each.saw)}")
        if each.hint and each.state is not State.OK:
            print(paint(f"    try: {escaped(each.hint)}", "dim", sys.stdout))
    sys.stdout.flush()


def _print_end(facts: dict[str, Any], outcomes: list[Outcome]) -> None:
    fixable = sum(each.fix is not None for outcome in outcomes for each in outcome.findings)
    words = [f"{facts['failed']} failed" if facts["failed"] else "Nothing failed"]
    if facts["fixed"]:
        words.append(f"{facts['fixed']} repaired")
    print(f"{', '.join(words)}.")
    if fixable:
        print(paint(f"  try: fermix doctor --fix  # repairs {fixable} of it", "dim", sys.stdout))


class Ticking:
    """Shows which check runs, once that takes a while."""

    def __init__(self, *, is_silent: bool) -> None:
        self._waiting = Waiting("looking", is_silent=is_silent)
        self._is_running = threading.Event()
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Ticking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()
        self._is_over.set()
        self._thread.join()

    def restart(self, check: str) -> None:
        """A new check begins."""
        with self._lock:
            self._waiting.restart(f"looking at {check}")
            self._is_running.set()

    def pause(self) -> None:
        """Take the sign away: something is printed."""
        with self._lock:
            self._is_running.clear()
            self._waiting.clear()

    def _tick(self) -> None:
        while not self._is_over.wait(_TICK_S):
            with self._lock:
                if self._is_running.is_set():
                    self._waiting.tick()
