"""What is typed after `config set KEY` becomes a value of the setting's kind."""

from __future__ import annotations

import pytest

from fermix.config import values
from fermix.errors import SettingInvalid
from tests.config.settings import SCHEMA


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("gateway.running_turns", "12", 12),
        ("gateway.running_turns", "-1_000", -1000),
        ("gateway.pause_s", "1.5", 1.5),
        ("gateway.pause_s", "2", 2),
        ("gateway.is_open", "False", False),
        ("gateway.level", "12", "12"),
        ("gateway.names", "a, b,", ["a", "b"]),
        ("gateway.names", '["a,b", "c"]', ["a,b", "c"]),
        ("gateway.names", "", []),
        ("channels.telegram.owner", "0123", "0123"),
        ("channels.telegram.allowed", "1,-2", ["1", "-2"]),
    ],
)
def test_text_is_read_as_the_declared_kind(key: str, text: str, value: object) -> None:
    assert values.parse(SCHEMA.locate(key).setting, text, key=key) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("gateway.running_turns", "many"),
        ("gateway.running_turns", "1.5"),
        ("gateway.running_turns", "٣"),
        ("gateway.running_turns", "9" * 5000),
        ("gateway.pause_s", "nan"),
        ("gateway.is_open", "yes"),
        ("gateway.names", "[" * 5000),
    ],
)
def test_text_of_another_kind_is_refused_with_what_was_expected(key: str, text: str) -> None:
    with pytest.raises(SettingInvalid) as refused:
        values.parse(SCHEMA.locate(key).setting, text, key=key)

    assert "Expected a" in refused.value.message or "Expected true" in refused.value.message
    assert len(refused.value.message) < 200
