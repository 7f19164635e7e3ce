"""Long conversations through the gateway: summed up in time, never lost, and the person is told."""

from __future__ import annotations

import pytest

from fermix.agent.context.estimate import Estimator, size_of
from fermix.agent.context.keeper import ContextKeeper
from fermix.messages import AssistantMessage, ConversationKey, ToolMessage, Usage
from fermix.providers.port import Done, Failed, FailureKind, ModelLimits
from tests.fakes import call
from tests.gateway.office import Office, until
from tests.gateway.test_erase import eraser_of

WINDOW = 4_096
SUMMARY = "Goal: talk\nDone: some of it\nFacts: none\nOpen:\n- the garden"
WORDS = "words of the person " * 40


class Talk:
    """A conversation with a model that sums up, answers, and refuses what is longer than its window."""

    def __init__(self, path, *, window: int | None = WINDOW, real: int = WINDOW, **keeper) -> None:
        self.summary: object = SUMMARY
        self.real = real
        self.asked: list[list[str]] = []
        self.sums = 0
        self.answer: object = lambda request: "answer " + "and more " * 20
        self.office = Office(
            path,
            self._answer,
            keeper=ContextKeeper(
                Estimator(), **{"threshold": 0.85, "history_messages": 1000, "summary_s": 5.0, **keeper}
            ),
        )
        self.office.model.limits = ModelLimits(window_tokens=window)

    def _answer(self, request):
        if request.system.startswith("You sum up"):
            self.sums += 1
            return self.summary
        tokens = (len(request.system) + sum(map(size_of, request.messages))) // 4
        if tokens > self.real:
            return Failed(FailureKind.CONTEXT_OVERFLOW, "too long", retryable=False)
        self.asked.append([message.text for message in request.messages])
        return self.answer(request) if callable(self.answer) else self.answer

    def say(self, number: int, words: str = WORDS):
        entry = self.office.submit(f"message {number}: {words}", id=f"m{number}")
        events = self.office.events(entry)
        return events, self.office.done(entry)

    def notices(self, events) -> list[str]:
        return [event.data["text"] for event in events if event.name == "notice"]


@pytest.fixture
def talk(tmp_path):
    made: list[Talk] = []

    def make(**options) -> Talk:
        made.append(Talk(tmp_path / "memory.db", **options))
        return made[-1]

    yield make
    for each in made:
        each.office.crash()


def test_a_long_conversation_never_overflows_and_keeps_its_first_request_and_open_items(talk) -> None:
    one = talk()

    for number in range(60):
        _, done = one.say(number)
        assert done["status"] == "completed", done

    assert one.sums > 2
    assert all("message 0: words" in texts[0] for texts in one.asked)
    after = next(index for index, texts in enumerate(one.asked) if "- the garden" in texts[0])
    assert all("- the garden" in texts[0] for texts in one.asked[after:])
    assert len(one.office.messages()) == 120


def test_requests_begin_the_same_but_where_a_summary_came(talk) -> None:
    one = talk()
    for number in range(60):
        one.say(number)

    pairs = zip(one.asked, one.asked[1:], strict=False)
    changes = sum(after[: len(before)] != before for before, after in pairs)
    assert changes == one.office.rows("SELECT count(*) FROM summaries")[0][0] > 0


def test_next_life_goes_on_from_the_summary(talk, tmp_path) -> None:
    one = talk()
    for number in range(30):
        one.say(number)
    one.office.crash()

    other = talk()
    other.say(30)

    assert "- the garden" in other.asked[-1][0] and "message 0: words" in other.asked[-1][0]
    assert len(other.asked[-1]) < 40


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        ("", "was empty"),
        ("word " * 4_000, "was no shorter"),
        ("Goal: x\nFacts: it is at https://example.org/invented", "named what nobody had said"),
        (Failed(FailureKind.PROVIDER_UNAVAILABLE, "gone", retryable=False), "failed (gone)"),
        (Failed(FailureKind.TIMEOUT, "slow", retryable=False), "took too long"),
        ((call("act"),), "asked for tools"),
        (Done(AssistantMessage("half of"), Usage(), "length"), "did not come to its end"),
    ],
)
def test_bad_summariser_leaves_the_history_and_the_person_is_told(talk, summary, why) -> None:
    one = talk()
    one.summary = summary
    told: list[str] = []
    for number in range(40):
        events, done = one.say(number)
        told += one.notices(events)
        assert done["status"] == "completed", done

    assert any(why in text and "kept" in text for text in told), told
    assert len(one.office.messages()) == 80
    assert one.office.rows("SELECT count(*) FROM summaries") == [(0,)]
    assert all("message 0: words" in texts[0] for texts in one.asked)
    assert 1 <= one.sums < 12


def test_one_message_longer_than_the_window_is_shortened_and_the_person_is_told(talk) -> None:
    one = talk()

    events, done = one.say(0, "x" * 60_000)

    assert done["status"] == "completed"
    assert any("longer than fake-1 can take" in text for text in one.notices(events))
    assert len(one.office.messages()[0].text) > 60_000


def test_a_turn_of_many_large_results_goes_on_and_its_request_stays(talk) -> None:
    one = talk()
    steps = iter(range(200))

    def work(request):
        number = next(steps)
        assert any("message 0" in message.text for message in request.messages)
        return "finished" if number == 60 else call("act", id=f"c{number}", word=f"{number} " + "y" * 900)

    one.answer = work
    _events, done = one.say(0)

    assert done["status"] == "completed" and "finished" in done["text"]
    stored = one.office.messages()
    assert sum(isinstance(message, ToolMessage) for message in stored) == 60
    assert one.sums >= 2


def test_overflow_the_estimate_did_not_see_is_made_shorter_and_asked_again(talk) -> None:
    one = talk(window=None, real=3_000)
    for number in range(14):
        events, done = one.say(number)
        assert done["status"] == "completed", (number, done)

    assert any("too long" in text for text in one.notices(events)) or one.sums


def test_overflow_that_nothing_helps_against_ends_after_three_tries_with_words(talk) -> None:
    one = talk(window=None, real=0)

    _, done = one.say(0)

    assert done["status"] == "failed" and done["error"]["code"] == "context_overflow"
    assert one.asked == []


def test_compact_command_sums_up_before_the_next_answer(talk) -> None:
    one = talk()
    for number in range(5):
        one.say(number)
    assert one.sums == 0

    one.office.say("/compact", id="k1")
    events, _ = one.say(6)

    assert one.sums == 1
    assert any("summed up" in text for text in one.notices(events))


def test_calls_for_summaries_are_on_the_bill_under_their_purpose(talk) -> None:
    one = talk()
    for number in range(25):
        one.say(number)

    assert one.sums > 0
    rows = dict(one.office.rows("SELECT purpose, count(*) FROM model_calls GROUP BY purpose"))
    assert rows["summary"] == one.sums > 0
    assert rows["answer"] == 25


def test_deleted_session_takes_its_summaries_along(talk) -> None:
    one = talk()
    for number in range(30):
        one.say(number)
    assert one.office.rows("SELECT count(*) FROM summaries")[0][0] > 0
    eraser = eraser_of(one.office)

    eraser.erase(ConversationKey("local", "main"))

    assert one.office.rows("SELECT count(*) FROM summaries") == [(0,)]
    eraser.stop(1.0)


def test_every_call_stands_on_the_bill_once(talk) -> None:
    one = talk()
    one.answer = "answer " + "and more " * 200  # so long that it is summed up behind the answer
    for number in range(40):
        one.say(number, "words")
    until("the last conversation to be tidied", lambda: one.office.gateway.queue.running == 0)

    assert one.sums > 1
    assert one.office.rows("SELECT count(*) FROM model_calls") == [(len(one.asked) + one.sums,)]
