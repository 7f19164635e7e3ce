"""The tool that reads long results back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fermix.conversations.results import StoredResult
from fermix.errors import ToolFailed, ToolRetry
from fermix.tools.recall import tool_result_recall
from tests.fakes import tool_context, turn_facts

TEXT = "\n".join(
    f"line {number}" + (" with a needle" if number % 300 == 7 else "") for number in range(1000)
)


@pytest.fixture
def recall():
    context = tool_context(turn_facts(Path("/")))
    stored = {
        "R1": StoredResult("shell", TEXT, is_cut=False),
        "R2": StoredResult("shell", "x", is_cut=True),
    }
    context = replace(context, recall=stored.get)

    def run(**arguments: object) -> str:
        return tool_result_recall.run(context, arguments)

    return run


def test_lines_come_with_their_numbers_and_how_many_are_left(recall) -> None:
    said = recall(id="R1", first_line=11, lines=2)

    assert said == "[shell: 1000 lines; 988 more behind these]\n11\tline 10\n12\tline 11"


def test_query_finds_lines_and_their_neighbours(recall) -> None:
    said = recall(id="R1", query="A NEEDLE").splitlines()

    assert said[0] == "[shell: 4 of 1000 lines hold 'a needle']"
    assert "8\tline 7 with a needle" in said and "6\tline 5" in said and "11\tline 10" not in said
    assert said.count("…") == 3


def test_query_that_finds_nothing_says_so(recall) -> None:
    assert recall(id="R1", query="hay") == "[shell: none of 1000 lines holds 'hay']"


def test_result_that_was_too_long_to_be_kept_whole_says_so(recall) -> None:
    assert "its end was too long" in recall(id="R2")


def test_unknown_id_and_lines_out_of_range_are_refused(recall) -> None:
    with pytest.raises(ToolFailed, match="No result 'R9'"):
        recall(id="R9")
    with pytest.raises(ToolRetry):
        recall(id="R1", first_line=0)
