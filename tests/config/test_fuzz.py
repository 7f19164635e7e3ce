"""Whatever stands in config.toml, reading it ends in settings or in a ConfigError."""

from __future__ import annotations

import contextlib
import string
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fermix.config.decoding import decode
from fermix.config.positions import lines_of, longest_key
from fermix.config.source import parse_source
from fermix.errors import ConfigError
from tests.config.settings import SCHEMA

TOML_LIKE = st.lists(
    st.sampled_from(
        [
            "[",
            "]",
            "{",
            "}",
            "=",
            ".",
            ",",
            "\n",
            '"',
            '"""',
            "'",
            "'''",
            "#",
            "\\",
            " ",
            "gateway",
            "x",
            "1",
            "true",
        ]
    )
).map("".join)


@given(st.one_of(st.binary(), TOML_LIKE.map(str.encode), st.text(string.printable).map(str.encode)))
@settings(max_examples=300)
def test_any_bytes_end_in_settings_or_a_config_error(raw: bytes) -> None:
    with contextlib.suppress(ConfigError):
        decode(SCHEMA, parse_source(Path("c.toml"), raw), user_home="/home/me")


@given(TOML_LIKE)
@settings(max_examples=300)
def test_looking_for_positions_never_fails(text: str) -> None:
    assert longest_key(text) >= 1
    assert all(1 <= line <= text.count("\n") + 1 for line in lines_of(text).values())


names = st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True)
items = st.sampled_from(
    ["1", '"a # b"', "'x'", '"""\n[no]\nk = 1\n"""', "[\n 1, # [no]\n 2]", "{ a = 1 }", "1979-05-27"]
)


@given(st.dictionaries(names, st.dictionaries(names, items, max_size=4), max_size=4))
def test_every_key_is_found_on_the_line_it_was_written_on(tables: dict[str, dict[str, str]]) -> None:
    text, expected = "# top\n", {}
    for table, pairs in tables.items():
        expected[(table,)] = text.count("\n") + 1
        text += f"[{table}]\n"
        for key, item in pairs.items():
            expected[(table, key)] = text.count("\n") + 1
            text += f"{key} = {item}  # note\n"

    assert lines_of(text) == expected
    parse_source(Path("c.toml"), text.encode())
