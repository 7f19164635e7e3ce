"""The instructions: the owner's words in them, the same bytes until those change."""

from __future__ import annotations

import time

import pytest

from fermix.agent.bootstrap import IDENTITY, PERSONA, RULES, Bootstrap
from fermix.agent.composer import BASE, SHORT, Composer
from fermix.agent.settings import AgentSettings
from fermix.config.declare import section_of
from fermix.config.values import decode
from fermix.errors import SettingInvalid
from fermix.providers.port import ModelLimits

WIDE = ModelLimits()
SMALL = ModelLimits(takes_tools=False, prompt_bytes=1024)


def test_owners_files_stand_in_their_order_around_what_no_file_can_take_out() -> None:
    words = Bootstrap("I am Hal.", "Open doors.", "Calm.")
    composer = Composer(
        AgentSettings(owner_name="Dave", instructions="Sing."), words, workspace="/ship/workspace"
    )

    *parts, runtime = composer.system(WIDE).split("\n\n")

    assert parts == ["I am Hal.", BASE, "Open doors.", "Calm.", "Your owner is Dave.", "Sing."]
    assert "/ship/workspace" in runtime
    assert "\n\n".join(part.text for part in composer.parts(WIDE)) == composer.system(WIDE)


def test_file_that_was_emptied_leaves_no_gap() -> None:
    parts = Composer(AgentSettings(), Bootstrap("I am Hal.", "", "")).parts(WIDE)

    assert [part.name for part in parts] == ["identity", "base", "runtime"]


def test_small_model_gets_the_short_instructions() -> None:
    composer = Composer(AgentSettings(owner_name="Ada", instructions="More."))

    assert composer.system(SMALL) == f"{SHORT}\n\nYour owner is Ada.\n\nMore."


def test_words_that_would_be_seeded_count_without_files() -> None:
    system = Composer(AgentSettings()).system(WIDE)

    assert all(text in system for text in (IDENTITY, BASE, RULES, PERSONA))


def test_composing_takes_no_time_once_it_is_made() -> None:
    composer = Composer(AgentSettings())
    started_s = time.perf_counter()
    for _ in range(1000):
        composer.system(WIDE)

    assert (time.perf_counter() - started_s) / 1000 < 0.002
    assert composer.system(WIDE) is composer.system(WIDE)


@pytest.mark.parametrize("name", ["two\nlines", " blank", "x" * 81])
def test_a_name_that_could_be_more_instructions_is_refused(name: str) -> None:
    (owner_name,) = (each for each in section_of(AgentSettings).settings if each.name == "owner_name")

    with pytest.raises(SettingInvalid, match="a name on one line"):
        decode(owner_name, name, key="agent.owner_name", place=lambda: "", user_home="/")
