"""The wizard's conversation, with a person who follows a script and a probe that answers by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fermix.errors import OwnerError, UsageError
from fermix.secret import Secret
from fermix.setup.wizard.flow import Wizard
from fermix.setup.wizard.port import Attempt, Decision, Given, Present, Table, Tried
from fermix.setup.wizard.vendors import VENDORS, vendor_named

OPENAI = "https://api.openai.com/v1"
GOOD = Tried(status="ok", message="It answers.", model="gpt-9", models=("gpt-9",))


class Person:
    """Answers by the beginning of each question; a question nobody scripted fails the test."""

    def __init__(self, *answers: tuple[str, object]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.told: list[str] = []

    def choose(self, question: str, options: Sequence[str], *, default: int) -> int:
        wanted = self._answer(question)
        if wanted is None:
            return default
        return next(at for at, option in enumerate(options) if option.startswith(str(wanted)))

    def line(self, question: str, default: str = "") -> str:
        wanted = self._answer(question)
        return default if wanted is None else str(wanted)

    def hidden(self, question: str) -> str:
        return str(self._answer(question) or "")

    def tell(self, text: str) -> None:
        self.told.append(text)

    def _answer(self, question: str) -> object:
        self.asked.append(question)
        assert self.answers, f"asked {question!r}, but nothing is left to say"
        beginning, answer = self.answers.pop(0)
        assert question.startswith(beginning), f"asked {question!r}, expected {beginning!r}"
        if isinstance(answer, type) and issubclass(answer, BaseException):
            raise answer
        return answer


class Probe:
    """Answers one attempt after the other."""

    def __init__(self, *answers: Tried) -> None:
        self.answers = list(answers)
        self.attempts: list[Attempt] = []

    def __call__(self, attempt: Attempt) -> Tried:
        self.attempts.append(attempt)
        return self.answers.pop(0)


def decide(
    person: Person | None,
    probe: Callable[[Attempt], Tried],
    *,
    given: dict[str, Any] | None = None,
    key: str | None = None,
    **present: Any,
) -> Decision:
    wizard = Wizard(
        Present(**present),
        Given(**(given or {})),
        asker=person,
        probe=probe,
        present_key=lambda table: Secret(key) if key and table.api_key else None,
    )
    return wizard.decide()


def failed(status: str, **more: Any) -> Tried:
    return Tried(status=status, message=f"It is {status}.", hint="Do this.", **more)


def test_three_questions_lead_to_a_provider() -> None:
    person = Person(("Who should answer?", "OpenAI"), ("Key for OpenAI", "sk-1"), ("Your name", "Ada"))
    probe = Probe(GOOD)

    decision = decide(person, probe)

    assert (decision.provider, decision.base_url, decision.model) == ("openai", None, "gpt-9")
    assert (probe.attempts[0].vendor, probe.attempts[0].base_url) == ("openai", OPENAI)
    assert decision.key == Secret("sk-1") and decision.owner_name == "Ada"
    assert probe.attempts[0].key == Secret("sk-1") and probe.attempts[0].preferred[0] == "gpt-5.5"
    assert len(person.asked) == 3


def test_address_that_is_none_is_asked_for_again_at_once() -> None:
    person = Person(
        ("Who should answer?", "Another server"),
        ("Its address", "box.lan 8000"),
        ("Its address", "ftp://box.lan"),
        ("Its address", "http://box.lan:8000/v1"),
        ("Your name", None),
    )
    probe = Probe(GOOD)

    decide(person, probe)

    assert [attempt.base_url for attempt in probe.attempts] == ["http://box.lan:8000/v1"]
    assert any("must start with 'http://' or 'https://'" in told for told in person.told)


@pytest.mark.parametrize(
    ("status", "correction", "field"),
    [
        ("auth", ("Key (not shown)", "sk-2"), "key"),
        ("address", ("Its address", "http://other/v1"), "base_url"),
        ("model_unknown", ("Model", "gpt-8"), "model"),
    ],
)
def test_only_the_wrong_answer_is_asked_for_again(
    status: str, correction: tuple[str, str], field: str
) -> None:
    person = Person(
        ("Who should answer?", "OpenAI"),
        ("Key for", "sk-1"),
        ("What now?", None),  # Enter takes what is proposed
        correction,
        ("Your name", None),
    )
    probe = Probe(failed(status, models=("a", "b")), GOOD)

    decide(person, probe)

    before, after = probe.attempts
    changed = [
        name for name in ("key", "base_url", "model") if getattr(before, name) != getattr(after, name)
    ]
    assert changed == [field]
    assert person.told[0] == f"It is {status}.\nDo this."


@pytest.mark.parametrize("status", ["quota", "rate_limited", "timeout", "failed"])
def test_what_passes_is_tried_again(status: str) -> None:
    person = Person(("Who", "OpenAI"), ("Key for", "sk-1"), ("What now?", None), ("Your name", None))
    probe = Probe(failed(status), GOOD)

    assert decide(person, probe).model == "gpt-9"
    assert probe.attempts[0] == probe.attempts[1]


def test_another_provider_can_be_taken_instead() -> None:
    person = Person(
        ("Who", "OpenAI"),
        ("Key for OpenAI", "sk-1"),
        ("What now?", "Another provider"),
        ("Who", "Mistral"),
        ("Key for Mistral", "m-1"),
        ("Your name", None),
    )

    decision = decide(person, Probe(failed("quota"), GOOD))

    assert (decision.provider, decision.key) == ("mistral", Secret("m-1"))


def test_a_bad_answer_can_be_kept_on_purpose() -> None:
    person = Person(("Who", "OpenAI"), ("Key for", "sk-1"), ("What now?", "Keep it"), ("Your name", None))

    decision = decide(person, Probe(failed("timeout")))

    assert (decision.model, decision.key) == ("gpt-5.5", Secret("sk-1"))
    assert decision.tried is not None and not decision.tried.is_good


def test_enter_keeps_everything_that_is_set() -> None:
    person = Person(("Who", None), ("Key for", None), ("Your name", None))
    table = Table(base_url="https://proxy.lan/v1", model="gpt-7", api_key="@secret:work")
    probe = Probe(GOOD)

    decision = decide(
        person, probe, provider="openai", tables={"openai": table}, owner_name="Ada", key="sk-old"
    )

    assert decision == Decision(
        provider="openai", base_url="https://proxy.lan/v1", model="gpt-7", owner_name="Ada", tried=GOOD
    )
    assert probe.attempts[0].key == Secret("sk-old")
    assert "Enter keeps the present one" in person.asked[1]


def test_a_server_of_ones_own_is_asked_for_by_address() -> None:
    person = Person(("Who", "Another server"), ("Its address", "http://box/v1"), ("Your name", None))

    decision = decide(person, Probe(GOOD))

    assert (decision.provider, decision.base_url, decision.key) == ("mine", "http://box/v1", None)


def test_a_server_of_ones_own_that_wants_a_key_is_asked_for_it_at_once() -> None:
    person = Person(
        ("Who", "Another server"),
        ("Its address", "http://box/v1"),
        ("Key for mine", "sk-1"),
        ("Your name", None),
    )
    probe = Probe(failed("auth"), GOOD)

    decision = decide(person, probe)

    assert [attempt.key for attempt in probe.attempts] == [None, Secret("sk-1")]
    assert decision.key == Secret("sk-1")
    assert not any("It is auth" in told for told in person.told)


def test_a_table_is_tried_as_the_vendor_it_names() -> None:
    table = Table(model="m", api_key="@secret:work", vendor="anthropic")
    person = Person(("Who", None), ("Its address", "https://proxy/v1"), ("Your name", None))
    probe = Probe(GOOD)

    decide(person, probe, key="sk", provider="work", tables={"work": table})

    assert probe.attempts[0].vendor == "anthropic"


def test_the_owners_own_table_stays_the_one_that_is_meant() -> None:
    person = Person(("Who", None), ("Its address", None), ("Your name", None))

    decision = decide(
        person, Probe(GOOD), provider="box", tables={"box": Table(base_url="http://box/v1", model="m")}
    )

    assert (decision.provider, decision.base_url, decision.model) == ("box", "http://box/v1", "m")


def test_an_ollama_is_offered_only_where_it_is() -> None:
    with pytest.raises(StopIteration):
        decide(Person(("Who", "Ollama")), Probe(GOOD))
    decision = decide(
        Person(("Who", None), ("Your name", None)), Probe(GOOD), ollama_url="http://127.0.0.1:1"
    )

    assert (decision.provider, decision.base_url) == ("ollama", "http://127.0.0.1:1")


def test_the_built_in_model_needs_neither_key_nor_address() -> None:
    probe = Probe(GOOD)

    decision = decide(Person(("Who", "The small model"), ("Your name", "Ada")), probe)

    assert (decision.provider, decision.base_url, decision.model) == ("local", None, None)
    assert probe.attempts[0].base_url is None


def test_a_model_that_takes_no_tools_is_written_down_as_such() -> None:
    person = Person(("Who", "OpenAI"), ("Key for", "sk"), ("Your name", None))
    answer = Tried(status="ok", message="", model="m", takes_tools=False)

    assert not decide(person, Probe(answer)).takes_tools


def test_flags_are_not_asked_for_again() -> None:
    given = {"provider": "openai", "key": Secret("sk-1"), "model": "gpt-8", "owner_name": "Ada"}
    person, probe = Person(), Probe(GOOD)

    decision = decide(person, probe, given=given)

    assert person.asked == []
    assert (decision.model, decision.owner_name) == ("gpt-8", "Ada")


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({}, "--provider"),
        ({"provider": "openai"}, "--key-file"),
        ({"provider": "other"}, "--base-url"),
        ({"base_url": "http://box/v1", "skips_probe": True}, "--model"),
    ],
)
def test_without_a_person_a_missing_answer_is_an_error_that_names_the_flag(
    given: dict[str, Any], flag: str
) -> None:
    with pytest.raises(UsageError) as missing:
        decide(None, Probe(GOOD), given=given)

    assert flag in str(missing.value.hint)


def test_without_a_person_what_is_set_is_kept() -> None:
    decision = decide(
        None,
        Probe(GOOD),
        given={"owner_name": "Ada"},
        provider="openai",
        tables={"openai": Table(model="gpt-7", api_key="@secret:openai")},
        key="sk-old",
    )

    assert (decision.provider, decision.model, decision.key) == ("openai", "gpt-7", None)


def test_without_a_person_a_failed_probe_is_an_error_with_its_own_code() -> None:
    given = {"provider": "openai", "key": Secret("sk-1")}

    with pytest.raises(OwnerError, match="It is auth") as refused:
        decide(None, Probe(failed("auth")), given=given)

    assert refused.value.code == "provider_auth"
    assert refused.value.hint == "Do this."


def test_without_a_probe_the_preferred_model_is_written() -> None:
    probe = Probe()
    given = {"provider": "openai", "key": Secret("sk-1"), "skips_probe": True}

    decision = decide(None, probe, given=given)

    assert (decision.model, decision.tried, probe.attempts) == ("gpt-5.5", None, [])


@pytest.mark.parametrize(("name", "meant"), [("opnai", "'openai'"), ("xyz", "Available")])
def test_an_unknown_provider_is_answered_with_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=meant):
        decide(None, Probe(GOOD), given={"provider": name})


def test_leaving_in_the_middle_decides_nothing() -> None:
    for position in range(3):
        answers: list[tuple[str, object]] = [("Who", "OpenAI"), ("Key for", "sk"), ("Your name", "Ada")]
        answers[position] = (answers[position][0], KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            decide(Person(*answers), Probe(GOOD))


def test_vendors_are_complete() -> None:
    for vendor in VENDORS:
        assert not vendor.needs_key or (vendor.base_url and vendor.preferred)
        is_ollama = vendor.name == "ollama"
        assert vendor.base_url is None or vendor.base_url.endswith("/v1") is not is_ollama
    assert len({vendor.name for vendor in VENDORS}) == len(VENDORS)
    assert vendor_named("other") is None and vendor_named("mine") is None
