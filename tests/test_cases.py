"""Every report that touches what is built has a test that exists, or a reason."""

from __future__ import annotations

import re
import tomllib

from tests.collected import CHECKOUT, missing_of

CASES = tomllib.loads((CHECKOUT / "tests/cases.toml").read_text())
REPORTS = CHECKOUT.parent / "shared/cases"
"""The lists of reports lie beside the checkout; a clone elsewhere does without."""

REQUIRED = {f"R{number}" for number in (*range(167, 191), *range(194, 203))}
"""The rows of what is built so far; `PREFIXES` says the same in the words of the list."""
PREFIXES = ("db/", "gevent/", "pkg/pyi", "pkg/service", "pkg/config", "web/")
ALSO_REQUIRED = {"S1", "S2", "S3", "S4", "S5", "W4", "W6", "W7", "W10", "W11", "W38"}
"""Of the incidents and of the wishes."""


def test_every_row_names_a_test_or_a_reason() -> None:
    malformed = {row: case for row, case in CASES.items() if set(case) not in ({"test"}, {"reason"})}
    assert malformed == {}
    assert [row for row in CASES if not re.fullmatch(r"R\d{3}|[SW]\d+", row)] == []


def test_every_required_row_is_there() -> None:
    assert sorted((REQUIRED | ALSO_REQUIRED) - CASES.keys()) == []


def test_required_rows_are_those_of_the_list() -> None:
    if not (REPORTS / "reports.md").exists():
        return  # a clone without the list; CI has it
    rows = re.findall(r"^\| (R\d+) \| ([^ |]+) \|", (REPORTS / "reports.md").read_text(), re.MULTILINE)
    assert {row for row, area in rows if area.startswith(PREFIXES)} == REQUIRED


def test_every_named_test_is_collected() -> None:
    named = {case["test"] for case in CASES.values() if "test" in case}
    assert missing_of(named, "--binary=dist/fermix") == []
