"""The table beside another agent, from made-up figures, and the sums behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.peer.__main__ import take
from tests.bench.peer.agents import nanobot
from tests.bench.peer.figures import Comparison, Figure, Value, load, markdown, plain, save
from tests.bench.peer.install import Installed
from tests.bench.peer.measure import Measurement, beyond_model_ms
from tests.bench.peer.processes import NotMeasured


def comparison(*figures: Figure) -> Comparison:
    return Comparison("2030-01-02", "2 cores, 24 GiB, Debian 12", ("fermix 1.0", "other 2.0"), figures)


def figure(ours: float | None, theirs: float | None, unit: str = "ms") -> Figure:
    return Figure("a figure", unit, (Value(ours, "" if ours else "why not"), Value(theirs, "it has none")))


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_table_shows_both_values_and_how_many_times_the_other_is() -> None:
    shown = rows(markdown(comparison(figure(20.4, 668.1), figure(5.04, 6.5), figure(90.0, 45.0))))

    assert shown == [
        "| Figure | fermix 1.0 | other 2.0 | Ratio |",
        "| --- | ---: | ---: | ---: |",
        "| a figure | 20 ms | 668 ms | 33× |",
        "| a figure | 5.0 ms | 6.5 ms | 1.3× |",
        "| a figure | 90 ms | 45 ms | 0.5× |",
    ]


def test_missing_value_is_a_dash_with_its_reason_below() -> None:
    text = markdown(comparison(figure(20.0, None), figure(None, None)))

    assert rows(text)[2:] == ["| a figure | 20 ms | – (1) | – |", "| a figure | – (2) | – (3) | – |"]
    assert "(1) other 2.0: it has none\n\n(2) fermix 1.0: why not\n\n(3) other 2.0: it has none" in text


def test_plain_count_has_neither_unit_nor_ratio() -> None:
    assert rows(markdown(comparison(figure(4.0, 23.0, unit=""))))[2:] == ["| a figure | 4 | 23 | – |"]


def test_table_says_when_and_where_it_was_measured() -> None:
    assert markdown(comparison()).endswith(
        "Measured on 2030-01-02: 2 cores, 24 GiB, Debian 12. Medians; less is better."
    )


def test_terminal_shows_the_same_cells_in_columns() -> None:
    lines = plain(comparison(figure(20.4, None))).splitlines()

    assert lines[0].split() == ["Figure", "fermix", "1.0", "other", "2.0", "Ratio"]
    assert lines[1].split() == ["a", "figure", "20", "ms", "–", "(1)", "–"]
    assert len(lines[0]) == len(lines[1]) and lines[2] == "(1) other 2.0: it has none"


def test_kept_figures_come_back_as_they_were(tmp_path: Path) -> None:
    whole, holed = comparison(figure(1.5, 2.5)), comparison(figure(1.5, None))

    save(holed, tmp_path / "kept.json")

    assert load(tmp_path / "kept.json") == holed
    assert whole.is_whole and not holed.is_whole


def test_models_own_time_is_taken_from_a_turns() -> None:
    ms = 1_000_000
    requests = [
        {"received_ns": 1 * ms, "last_byte_ns": 9 * ms},  # of the turn before
        {"received_ns": 12 * ms, "last_byte_ns": 32 * ms},
        {"received_ns": 33 * ms, "last_byte_ns": 53 * ms},
    ]

    assert beyond_model_ms(10 * ms, 56 * ms, requests) == 6.0


def test_turn_without_a_question_to_the_model_is_no_figure() -> None:
    with pytest.raises(NotMeasured, match="without a question"):
        beyond_model_ms(1, 2, [{"received_ns": 5, "last_byte_ns": 6}])


def test_what_was_had_before_a_failure_is_kept(tmp_path: Path) -> None:
    def measure(agent: Any, model: Any) -> Iterator[float]:
        yield 1.5
        raise FileNotFoundError(2, "No such file or directory", str(tmp_path))

    agent = nanobot(Installed("2.0", tmp_path / "none", tmp_path), tmp_path, "http://127.0.0.1:1/v1")

    no_model: Any = None
    values = take(Measurement((("first", "ms"), ("second", "ms")), measure), agent, no_model)

    assert values == (Value(1.5), Value(reason="No such file or directory"))
