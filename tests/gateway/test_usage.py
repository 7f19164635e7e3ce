"""What turns took: billed with each step, in all lives, whatever becomes of the answer."""

from __future__ import annotations

from fermix.messages import ModelCall, Usage
from fermix.providers.port import Called, Failed, FailureKind
from tests.fakes import FakeModel, call
from tests.gateway.office import until


class Dear(FakeModel):
    """Asks a price for every call; None when it has none."""

    def __init__(self, *script: object, cost: int | None = 30) -> None:
        super().__init__(*script)
        self.cost = cost

    def called(self, outcome: str = "done") -> Called:
        return Called(
            ModelCall(
                provider="dear",
                model="big",
                usage=Usage(10, 2, 4),
                is_estimated=False,
                cost_micro_usd=self.cost,
                outcome=outcome,
                started_ms=0,
                ended_ms=1,
            )
        )


class Breaking(Dear):
    """Is billed for an answer that breaks off."""

    def stream(self, request):
        yield self.called("transport")
        yield Failed(FailureKind.TRANSPORT, "It hung up.", retryable=False)


def calls(office):
    return office.rows("SELECT provider, model, outcome, cost_micro_usd FROM model_calls ORDER BY id")


def use(office, model):
    """Let this model answer from now on."""
    office.model.stream = model.stream


def test_each_call_is_on_the_bill_and_the_turn_is_their_sum(open_office) -> None:
    office = open_office()
    use(office, Dear(call("act"), "done"))

    ending = office.done(office.submit())

    assert calls(office) == [("dear", "big", "done", 30)] * 2
    tokens = {"input_tokens": 20, "output_tokens": 4, "cached_tokens": 8}
    assert ending["usage"] == {**tokens, "cost_micro_usd": 60}
    assert office.rows("SELECT input_tokens, cost_micro_usd FROM turns") == [(20, 60)]
    assert office.rows("SELECT DISTINCT conversation_id FROM model_calls") == office.rows(
        "SELECT id FROM conversations"
    )


def test_unknown_price_stays_unknown_also_when_read_again(open_office) -> None:
    office = open_office()
    use(office, Dear("hi", cost=None))

    entry = office.submit()

    assert office.done(entry)["usage"]["cost_micro_usd"] is None
    assert office.replay.log_of(entry.turn_id, 0).ending["usage"]["cost_micro_usd"] is None
    assert "cost unknown" in office.say("/usage", id="m2")


def test_answer_that_broke_off_is_billed(open_office) -> None:
    office = open_office()
    use(office, Breaking())

    ending = office.done(office.submit())

    assert (ending["status"], ending["usage"]["cost_micro_usd"]) == ("failed", 30)
    assert calls(office) == [("dear", "big", "transport", 30)]


def test_next_life_adds_to_what_the_last_one_took(open_office) -> None:
    office = open_office()
    use(office, Dear(call("act"), "never said"))
    office.on_run = lambda ctx: office.db.stop(5.0)
    entry = office.submit()
    until("the tool to run", lambda: office.ran)
    office = open_office()
    use(office, Dear("hello again"))
    office.gateway.recover()

    ending = office.done(entry)

    assert str(ending["text"]).startswith("hello again")
    assert ending["usage"]["cost_micro_usd"] == 60


def test_usage_command_tells_what_the_conversation_took(open_office) -> None:
    office = open_office()
    use(office, Dear("hi", cost=2_500_000))
    office.say()

    here, elsewhere = office.say("/usage", id="m2"), office.say("/usage", id="m3", chat="other")

    assert "- in all: 1 call, 10 tokens read (4 from the cache), 2 written, $2.50" in here
    assert "- in all: no calls" in elsewhere
    assert "$2.50" in office.say("/usage all", id="m4", chat="other")


def test_deleted_conversation_stays_on_the_bill(open_office) -> None:
    office = open_office()
    use(office, Dear("hi"))
    office.say()
    office.change("DELETE FROM messages")
    office.change("DELETE FROM conversations")

    assert "$0.000030" in office.say("/usage all", id="m2", chat="other")
