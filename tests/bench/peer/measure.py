"""What is measured, the same way for every agent."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec

from tests.bench import median_ms
from tests.bench.peer.agents import COMMAND_TIMEOUT_S, Agent
from tests.bench.peer.processes import NotMeasured, answer_s, running, settled_bytes, wait_until_gone
from tests.bot import Model

ANSWER = "Fine, thank you. " * 8
SCRIPT = {
    "rules": [
        {"when": "ping", "then": [{"say": "pong", "first_delay_ms": 20}]},
        {"when": "", "then": [{"say": ANSWER, "first_delay_ms": 20}]},
    ]
}

TURNS = (50, 300)
WINDOW = 21
"""A turn's figure is the median over this many turns with it in the middle."""
LAST_TURN = TURNS[-1] + WINDOW // 2

ONE_SHOTS, STARTS = 9, 5


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures that are taken together: names with units, and the way to their values."""

    figures: tuple[tuple[str, str], ...]
    take: Callable[[Agent, Model], Iterator[float]]
    """Yields a value for each, in this order; those it had before it failed count."""


def version(agent: Agent, model: Model) -> Iterator[float]:
    """Exec → exit of the command that prints the version, warm."""

    def run() -> None:
        subprocess.run(
            agent.version_words,
            env=agent.environment,
            cwd=agent.home,
            check=True,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
        )

    yield median_ms(run)


def start(agent: Agent, model: Model) -> Iterator[float]:
    """Exec → the daemon's health says that it takes messages, in a home that was used before."""

    def bring_up() -> float:
        with running(agent) as took_s:
            return took_s * 1000

    bring_up()
    yield median(bring_up() for _ in range(STARTS))


def ping_size(agent: Agent, model: Model) -> Iterator[float]:
    """Kilobytes of the first request a home ever makes, for a bare `ping`, and how many tools it offers.

    Of the body as the model server records it, written compactly: spaces between tokens, if an agent
    sends any, are not counted against it.
    """
    answer_s(agent, b"pong")
    _leave(agent)
    body = model.requests()[0]["body"]
    yield len(msgspec.json.encode(body)) / 1000
    yield len(body.get("tools", []))


def cold_one_shot(agent: Agent, model: Model) -> Iterator[float]:
    """Exec → answer printed while no daemon runs; what it started for that is ended after each."""

    def ask() -> float:
        took_s = answer_s(agent, b"pong")
        _leave(agent)
        return took_s * 1000

    ask()
    yield median(ask() for _ in range(ONE_SHOTS))


def daemon(agent: Agent, model: Model) -> Iterator[float]:
    """Of one running daemon: memory when idle, one-shots beside it, one long conversation, memory again."""
    with running(agent):
        yield settled_bytes(agent) / 1e6
        answer_s(agent, b"pong")
        yield median(answer_s(agent, b"pong") * 1000 for _ in range(ONE_SHOTS))
        yield from _turn_overhead_ms(agent, model)
        yield settled_bytes(agent) / 1e6


MEASUREMENTS = (
    Measurement((("`version` command", "ms"),), version),
    Measurement((("daemon started and healthy", "ms"),), start),
    Measurement((("request bytes of a bare `ping`", "kB"), ("tools offered in it", "")), ping_size),
    Measurement((("one-shot `ping`, no daemon running", "ms"),), cold_one_shot),
    Measurement(
        (
            ("idle memory, just started", "MB"),
            ("one-shot `ping`, daemon running", "ms"),
            (f"turn overhead at turn {TURNS[0]}", "ms"),
            (f"turn overhead at turn {TURNS[1]}", "ms"),
            (f"idle memory after {LAST_TURN} turns", "MB"),
        ),
        daemon,
    ),
)


def _turn_overhead_ms(agent: Agent, model: Model) -> list[float]:
    """At each of TURNS, what a turn takes beyond the model's own time, its client included.

    Client's send → client is told that the turn has ended, less the time between the arrival and the
    last byte of every request the model got meanwhile.
    """
    with agent.talk() as turn:
        times = [turn(f"How are you, number {number}?") for number in range(1, LAST_TURN + 1)]
    requests = model.requests()
    overheads_ms = [beyond_model_ms(sent, ended, requests) for sent, ended in times]
    half = WINDOW // 2
    return [median(overheads_ms[number - 1 - half : number + half]) for number in TURNS]


def beyond_model_ms(sent_ns: int, ended_ns: int, requests: list[dict[str, Any]]) -> float:
    """A turn's time less that of the model's answers in it.

    Raises: NotMeasured when the model was not asked at all.
    """
    asked = [request for request in requests if sent_ns <= request["received_ns"] <= ended_ns]
    if not asked:
        raise NotMeasured("a turn ended without a question to the model")
    model_ns: int = sum(request["last_byte_ns"] - request["received_ns"] for request in asked)
    return (ended_ns - sent_ns - model_ns) / 1e6


def _leave(agent: Agent) -> None:
    agent.leave()
    wait_until_gone(agent)
