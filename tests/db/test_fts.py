"""Search words against a real FTS5 table."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.db import match_expression

NOTES = {
    1: "I make mistakes every day",
    2: "He took the wrong-book home",
    3: "The gpu has thermal issues again",
    4: "Only the gpu is named here",
    5: "title: NOT everything (is) a* column",
    6: "The book was wrong",
}


@pytest.fixture(scope="module")
def table():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE notes USING fts5(text)")
    connection.executemany("INSERT INTO notes (rowid, text) VALUES (?, ?)", NOTES.items())
    yield connection
    connection.close()


def found(table, text):
    expression = match_expression(text)
    if not expression:
        return []
    rows = table.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rowid", (expression,))
    return [row[0] for row in rows]


def test_hyphenated_word_is_text(table):
    """R169."""
    assert found(table, "wrong-book") == [2]
    assert found(table, "mistakes OR wrong-book") == [1, 2]


def test_words_are_found_apart(table):
    """R170."""
    assert found(table, "gpu issues") == [3]
    assert found(table, "issues gpu") == [3]
    assert found(table, "gpu") == [3, 4]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('"wrong book"', [2]),
        ("wrong book", [2, 6]),
        ("title: a*", [5]),
        ("NOT everything", [5]),
        ("NEAR(gpu", []),
        ("gpu - issues", [3]),
        ("OR gpu", []),
        ("gpu OR", [3, 4]),
        ('unbalanced "gpu', []),
        ("gpu OR OR mistakes", [3, 4]),
        ("", []),
        ("  \t ", []),
        ("?!* --", []),
        ("gpu\0issues", []),
        ("gpu \ud83e\udd16".encode("utf-16", "surrogatepass").decode("utf-16"), [3, 4]),
    ],
)
def test_odd_input_is_text(table, text, rows):
    assert found(table, text) == rows


def test_many_words_stay_within_what_sqlite_parses(table):
    assert found(table, "gpu " * 10_000) == [3, 4]
    assert found(table, "gpu OR " * 10_000) == [3, 4]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_no_input_is_a_syntax_error(text):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE notes USING fts5(text)")
    expression = match_expression(text)
    if expression:
        connection.execute("SELECT rowid FROM notes WHERE notes MATCH ?", (expression,)).fetchall()
    connection.close()
