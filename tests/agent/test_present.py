"""A provider that is replaced leaves after its last turn."""

from __future__ import annotations

from fermix.agent.loop import Agent
from fermix.agent.present import PresentAgent
from fermix.agent.settings import AgentSettings
from fermix.capabilities.registry import Registry
from fermix.tasks import sleep
from tests.fakes import FakeModel


class Model(FakeModel):
    """Notes that it was stopped."""

    def __init__(self) -> None:
        super().__init__("hi")
        self.is_stopped = False

    def stop(self, timeout_s: float) -> None:
        self.is_stopped = True


def agent(model: Model) -> Agent:
    return Agent(model, Registry(()), invoke=lambda *_: None, settings=AgentSettings())


def test_turn_keeps_its_agent_while_the_next_one_gets_another() -> None:
    old, new = agent(Model()), agent(Model())
    present = PresentAgent(old)

    with present.lent() as first:
        present.replace(new, patience_s=60.0)
        with present.lent() as second:
            assert (first, second, present.agent) == (old, new, new)


def test_provider_is_stopped_after_its_last_turn() -> None:
    model = Model()
    present = PresentAgent(agent(model))

    with present.lent():
        with present.lent():
            present.replace(agent(Model()), patience_s=60.0)
            sleep(0)
            assert not model.is_stopped
        sleep(0)
        assert not model.is_stopped
    sleep(0)

    assert model.is_stopped


def test_unused_provider_is_stopped_at_once() -> None:
    model = Model()
    present = PresentAgent(agent(model))
    with present.lent():
        pass

    present.replace(agent(Model()), patience_s=60.0)
    sleep(0)

    assert model.is_stopped


def test_other_settings_leave_the_provider_alone() -> None:
    model = Model()
    present = PresentAgent(agent(model))

    present.replace(agent(model), patience_s=60.0)
    sleep(0)

    assert not model.is_stopped


def test_turn_that_does_not_end_delays_the_stop_by_a_bounded_time() -> None:
    model = Model()
    present = PresentAgent(agent(model))

    with present.lent():
        present.replace(agent(Model()), patience_s=0.01)
        sleep(0.05)

        assert model.is_stopped


def test_stop_stops_what_is_left_of_earlier_ones_too() -> None:
    models = [Model(), Model(), Model()]
    present = PresentAgent(agent(models[0]))

    with present.lent():
        present.replace(agent(models[1]), patience_s=60.0)
        present.replace(agent(models[2]), patience_s=60.0)
        present.stop(1.0)

    assert [model.is_stopped for model in models] == [True, True, True]
