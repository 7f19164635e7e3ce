"""Several providers as one: who answers, what watchers are told, and what is asked of whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fermix.errors import ProviderError
from fermix.messages import AssistantMessage, Usage, UserMessage
from fermix.providers.build import build_chain
from fermix.providers.chain import HASTY_WAIT_S, Chain
from fermix.providers.health import FIRST_REST_S, GateState
from fermix.providers.port import (
    Done,
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    Remark,
    Restarted,
    StreamEvent,
    TextDelta,
)
from fermix.providers.settings import NamedProviderSettings, ProviderSettings
from fermix.providers.vendors.vendor import Parts
from fermix.tasks import Cancel, Deadline
from tests.fakes import FakeClock

DOWN = Failed(FailureKind.PROVIDER_UNAVAILABLE, "down", retryable=True)
BUSY = Failed(FailureKind.RATE_LIMITED, "busy", retryable=True, retry_after_s=60.0)


class Scripted:
    """Answers each question with the next script: deltas and, at the end, what becomes of it."""

    price = None

    def __init__(self, name: str, *scripts: tuple[str | Failed, ...], limits: ModelLimits | None = None):
        self.name, self.model, self.limits = name, f"{name}-1", limits or ModelLimits()
        self.scripts = list(scripts)
        self.asked: list[ModelRequest] = []
        self.is_stopped = False

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        self.asked.append(request)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        said = ""
        for step in script:
            if isinstance(step, Failed):
                yield step
                return
            said += step
            yield TextDelta(step)
        yield Done(AssistantMessage(said), Usage(), "stop")

    def notice(self) -> str | None:
        return f"notice of {self.name}"

    def stop(self, timeout_s: float) -> None:
        self.is_stopped = True


def question(**more: object) -> ModelRequest:
    return ModelRequest(
        system="s",
        messages=(UserMessage("hi"),),
        tools=(),
        cancel=Cancel(),
        deadline=Deadline.after(60),
        **more,
    )


def told(chain: Chain, request: ModelRequest | None = None) -> list[StreamEvent]:
    return list(chain.stream(request or question()))


def test_the_first_that_is_well_answers_alone() -> None:
    one, two = Scripted("one", ("hello",)), Scripted("two", ("other",))

    events = told(Chain([one, two], clock=FakeClock()))

    assert [type(event) for event in events] == [TextDelta, Done]
    assert two.asked == []


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.AUTH,
        FailureKind.QUOTA,
        FailureKind.MODEL_UNKNOWN,
        FailureKind.RATE_LIMITED,
        FailureKind.PROVIDER_UNAVAILABLE,
        FailureKind.TIMEOUT,
        FailureKind.TRANSPORT,
        FailureKind.PROTOCOL,
        FailureKind.IMAGE_UNSUPPORTED,
    ],
)
def test_before_the_first_word_the_next_takes_over_with_one_short_remark(kind: FailureKind) -> None:
    one = Scripted("one", (replace(DOWN, kind=kind),))

    remark, *events = told(Chain([one, Scripted("two", ("other",))], clock=FakeClock()))

    assert isinstance(remark, Remark)
    assert remark.text.startswith("one ") and remark.text.endswith("; two answers instead.")
    assert [type(event) for event in events] == [TextDelta, Done]


def test_after_words_were_shown_watchers_are_told_to_drop_them() -> None:
    one, two = Scripted("one", ("Half an", DOWN)), Scripted("two", ("A whole answer",))

    events = told(Chain([one, two], clock=FakeClock()))

    assert [type(event) for event in events] == [TextDelta, Remark, Restarted, TextDelta, Done]


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.CANCELLED,
        FailureKind.CONTENT_REFUSED,
        FailureKind.CONTEXT_OVERFLOW,
        FailureKind.INVALID_REQUEST,
    ],
)
def test_the_questions_own_fault_is_not_carried_to_the_next(kind: FailureKind) -> None:
    two = Scripted("two", ("other",))
    failure = replace(DOWN, kind=kind)

    assert told(Chain([Scripted("one", (failure,)), two], clock=FakeClock())) == [failure]
    assert two.asked == []


def test_all_that_fail_end_with_the_last_failure() -> None:
    last = replace(DOWN, message="also down")
    chain = Chain([Scripted("one", (DOWN,)), Scripted("two", (last,))], clock=FakeClock())

    assert told(chain)[-1] == last


def test_one_that_rests_is_not_asked_until_its_time_is_over_and_one_question_brings_it_back() -> None:
    clock = FakeClock()
    one, two = Scripted("one", (DOWN,), (DOWN,), ("back",)), Scripted("two", ("other",))
    chain = Chain([one, two], clock=clock)
    for _ in range(4):
        told(chain)
    assert len(one.asked) == 2 and chain.name == "two"
    assert chain.report()[0].state is GateState.OPEN and chain.report()[0].reason == "down"

    clock.ms += int(FIRST_REST_S * 1000)

    assert told(chain)[0] == TextDelta("back")
    assert chain.report()[0].state is GateState.CLOSED and chain.name == "one"


def test_a_named_time_is_never_undercut_even_when_nobody_else_is_there() -> None:
    clock = FakeClock()
    one = Scripted("one", (BUSY,), ("back",))
    chain = Chain([one], clock=clock)
    told(chain)

    for _ in range(3):
        (failed,) = told(chain)
        assert isinstance(failed, Failed) and failed.kind is FailureKind.RATE_LIMITED
        assert "asked again in 60 s" in failed.message
    assert len(one.asked) == 1

    clock.ms += 60_000
    assert told(chain)[0] == TextDelta("back")


def test_with_nobody_else_there_one_is_asked_although_it_rests_of_our_own_accord() -> None:
    one = Scripted("one", (DOWN,), (DOWN,), ("back",))
    chain = Chain([one], clock=FakeClock())
    told(chain)
    told(chain)

    assert told(chain)[0] == TextDelta("back")


def test_after_a_repair_everyone_is_looked_at_again_but_who_named_a_time() -> None:
    wrong_key = replace(DOWN, kind=FailureKind.AUTH)
    one, two = Scripted("one", (wrong_key,), ("back",)), Scripted("two", (BUSY,))
    chain = Chain([one, two, Scripted("three", ("other",))], clock=FakeClock())
    told(chain)

    chain.look_again()

    assert [route.state for route in chain.report()[:2]] == [GateState.CLOSED, GateState.OPEN]


def test_the_next_is_asked_what_fits_it() -> None:
    small = ModelLimits(window_tokens=4096)
    one, two = Scripted("one", (DOWN,)), Scripted("two", ("ok",), limits=small)
    request = question(fitted=lambda limits: replace(question(), system=str(limits.window_tokens)))

    told(Chain([one, two], clock=FakeClock()), request)

    assert (one.asked[0].system, two.asked[0].system) == ("s", "4096")


def test_nobody_waits_long_for_one_while_another_could_answer() -> None:
    one, two = Scripted("one", (DOWN,)), Scripted("two", ("ok",))

    told(Chain([one, two], clock=FakeClock()))

    assert one.asked[0].longest_wait_s == HASTY_WAIT_S
    assert two.asked[0].longest_wait_s == question().longest_wait_s


def test_a_stream_that_is_given_up_lets_the_next_probe_through() -> None:
    clock = FakeClock()
    one = Scripted("one", (DOWN,), (DOWN,), ("a", "b"))
    chain = Chain([one, Scripted("two", ("other",))], clock=clock)
    told(chain)
    told(chain)
    clock.ms += int(FIRST_REST_S * 1000)

    events = chain.stream(question())
    next(events)
    events.close()

    assert told(chain)[0] == TextDelta("a")


@pytest.mark.parametrize("last", [Remark, Restarted])
def test_a_stream_given_up_before_its_next_provider_is_asked_lets_the_next_probe_through(
    last: type[StreamEvent],
) -> None:
    clock = FakeClock()
    one = Scripted("one", ("half", BUSY))
    two = Scripted("two", (DOWN,), (DOWN,), ("back",))
    chain = Chain([one, two, Scripted("three", ("other",))], clock=clock)
    told(chain)
    told(chain)
    clock.ms += 61_000

    events = chain.stream(question())
    for event in events:
        if isinstance(event, last):
            break
    events.close()

    assert TextDelta("back") in told(chain)


def test_what_it_says_of_itself_is_of_who_would_answer_and_all_are_stopped() -> None:
    one, two = Scripted("one", (DOWN,)), Scripted("two", ("other",), limits=ModelLimits(takes_tools=False))
    chain = Chain([one, two], clock=FakeClock())
    assert (chain.name, chain.model, chain.limits.takes_tools) == ("one", "one-1", True)
    told(chain)
    told(chain)
    assert (chain.name, chain.limits.takes_tools, chain.notice()) == ("two", False, "notice of two")

    chain.stop(1.0)

    assert one.is_stopped and two.is_stopped


def test_a_provider_stands_in_a_chain_once(parts: Parts) -> None:
    named = {"a": NamedProviderSettings(base_url="http://127.0.0.1:9/v1", model="m")}

    with pytest.raises(ProviderError, match="'a' stands twice"):
        build_chain(ProviderSettings(name="a", fallback=("local", "a")), named, parts=parts)
    chain = build_chain(ProviderSettings(name="a", fallback=("local",)), named, parts=parts)
    assert [route.name for route in chain.report()] == ["a", "local"]
