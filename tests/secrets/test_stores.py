"""Secrets are looked up in order, named in errors, and known to the redactor."""

from __future__ import annotations

from pathlib import Path

import pytest

from fermix.errors import ConfigError, SecretMissing, SettingInvalid
from fermix.paths import Home
from fermix.secret import Secret
from fermix.secrets import Redactor, SecretStores


def test_the_environment_comes_before_the_files(tmp_path: Path) -> None:
    home = Home(tmp_path)
    SecretStores(home, {}).set("model-key", Secret("from file"))

    assert (
        SecretStores(home, {"FERMIX_SECRET_MODEL_KEY": "from env"}).get("model-key").reveal() == "from env"
    )
    assert SecretStores(home, {"FERMIX_SECRET_MODEL_KEY": ""}).get("model-key").reveal() == "from file"


def test_a_reference_is_resolved(tmp_path: Path) -> None:
    stores = SecretStores(Home(tmp_path), {"FERMIX_SECRET_KEY": "value"})

    assert stores.resolve("@secret:key").reveal() == "value"


def test_what_is_no_reference_is_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid) as refused:
        SecretStores(Home(tmp_path), {}).resolve("sk-written-out")

    assert "sk-written-out" not in str(refused.value) + str(refused.value.hint)


@pytest.mark.parametrize(
    "text", ["sk-one\nsk-two", "sk-one\r\nX-Other: header", "sk-\u201cquoted\u201d", "sk-\x1b[0m"]
)
def test_a_key_that_fits_in_no_header_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    for environment in ({}, {"FERMIX_SECRET_MINE": text}):
        stores = SecretStores(Home(tmp_path), environment)
        stores.set("mine", Secret(text))

        with pytest.raises(ConfigError, match="'mine' is no key: it has more than one line") as refused:
            stores.resolve("@secret:mine")

        assert "sk-" not in str(refused.value) + str(refused.value.hint)
        assert refused.value.hint == "fermix secrets set mine"


def test_a_missing_secret_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing) as missing:
        SecretStores(Home(tmp_path), {}).get("model-key")

    assert "'model-key'" in missing.value.message
    assert "FERMIX_SECRET_MODEL_KEY" in missing.value.message
    assert missing.value.hint == "fermix secrets set model-key"


def test_the_names_of_all_stores_are_listed_once(tmp_path: Path) -> None:
    stores = SecretStores(Home(tmp_path), {"FERMIX_SECRET_B": "x", "FERMIX_SECRET_C": "y", "OTHER": "z"})
    stores.set("a", Secret("value"))
    stores.set("b", Secret("value"))

    assert stores.names() == ["a", "b", "c"]


def test_removing_what_is_not_kept_is_an_error(tmp_path: Path) -> None:
    stores = SecretStores(Home(tmp_path), {"FERMIX_SECRET_B": "x"})

    with pytest.raises(SecretMissing):
        stores.remove("b")


def test_every_secret_handed_out_or_kept_is_redacted_from_then_on(tmp_path: Path) -> None:
    redactor = Redactor()
    stores = SecretStores(Home(tmp_path), {"FERMIX_SECRET_ONE": "first-value"}, redactor=redactor)

    stores.get("one")
    stores.set("two", Secret("second-value"))

    assert redactor.redact("first-value and second-value") == "*** and ***"
