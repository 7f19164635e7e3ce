"""Writing a decision down: whole or not at all, and nothing but what was answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fermix.config.source import read_source
from fermix.config.writer import ConfigWriter, backup_of
from fermix.daemon.sections import SCHEMA, load_settings
from fermix.errors import ConfigChanged, ConfigError, FermixError
from fermix.paths import Home
from fermix.secret import Secret
from fermix.secrets import SecretStores
from fermix.setup.wizard.commit import Written, commit
from fermix.setup.wizard.port import Decision, Present, Table, Tried

HAND_WRITTEN = """\
# My fermix. Order and comments are mine.
[http]
port = 4031   # the other one is taken

[providers.openai]
model = "gpt-7"
# the proxy at work
base_url = "https://proxy.lan/v1"
timeout_s = 300

[agent]
instructions = '''
Be brief.
'''
"""
OURS = Decision(
    provider="openai",
    base_url="https://proxy.lan/v1",
    model="gpt-9",
    key=Secret("sk-new"),
    owner_name="Ada",
)


class House:
    """A home with a config.toml."""

    def __init__(self, root: Path, text: str | None) -> None:
        self.home = Home(root)
        self.stores = SecretStores(self.home, {})
        if text is not None:
            self.home.config.write_text(text)
            self.home.config.chmod(0o600)
        self.source = read_source(self.home.config)

    def present(self) -> Present:
        settings = load_settings(self.home, {"HOME": "/"})
        chosen = self.source.document.get("provider")
        return Present(
            provider=settings.provider.name if isinstance(chosen, dict) and "name" in chosen else None,
            model=settings.provider.model,
            owner_name=settings.agent.owner_name,
            tables={
                name: Table(base_url=table.base_url, model=table.model, api_key=table.api_key)
                for name, table in settings.providers.items()
            },
        )

    def commit(self, decision: Decision, writer: Any = None) -> Written:
        writer = writer or ConfigWriter(self.home.config, SCHEMA, user_home="/")
        return commit(decision, self.present(), self.source, writer=writer, stores=self.stores)

    @property
    def text(self) -> str:
        return self.home.config.read_text()


def test_an_empty_home_gets_what_was_answered_and_no_more(tmp_path: Path) -> None:
    house = House(tmp_path, None)

    written = house.commit(OURS)

    settings = load_settings(house.home, {"HOME": "/"})
    assert settings.provider.name == "openai" and settings.agent.owner_name == "Ada"
    assert settings.providers["openai"].api_key == "@secret:openai"
    assert house.stores.get("openai").reveal() == "sk-new"
    assert (written.secret, written.store) == ("openai", "files")
    assert "sk-new" not in house.text
    assert len(house.text.splitlines()) == 10


def test_a_hand_written_file_keeps_every_other_character(tmp_path: Path) -> None:
    house = House(tmp_path, HAND_WRITTEN)

    written = house.commit(OURS)

    kept = house.text
    for change in (
        ('model = "gpt-9"', 'model = "gpt-7"'),
        ('api_key = "@secret:openai"\n', ""),
        ('owner_name = "Ada"\n', ""),
        ('\n[provider]\nname = "openai"\n', ""),
    ):
        assert change[0] in kept
        kept = kept.replace(*change)
    assert kept == HAND_WRITTEN
    assert backup_of(house.home.config).read_text() == HAND_WRITTEN
    assert sorted(written.keys) == [
        "agent.owner_name",
        "provider.name",
        "providers.openai.api_key",
        "providers.openai.model",
    ]


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    house = House(tmp_path, HAND_WRITTEN)
    house.commit(OURS)
    again = House(tmp_path, None)
    before = again.text

    written = again.commit(Decision(**{**_fields(OURS), "key": None}))

    assert written == Written(keys=())
    assert again.text == before


def test_a_key_goes_where_the_table_says_its_secret_is(tmp_path: Path) -> None:
    house = House(tmp_path, '[providers.openai]\nbase_url = "https://h/v1"\napi_key = "@secret:work"\n')

    assert house.commit(OURS).secret == "work"
    assert house.stores.names() == ["work"]


def test_a_model_that_counts_before_the_tables_is_changed_too(tmp_path: Path) -> None:
    house = House(
        tmp_path, '[provider]\nname = "box"\nmodel = "big"\n[providers.box]\nbase_url = "http://b/v1"\n'
    )

    house.commit(OURS)

    assert load_settings(house.home, {"HOME": "/"}).provider.model == "gpt-9"


def test_back_to_the_model_on_this_machine_takes_the_others_name_out(tmp_path: Path) -> None:
    house = House(
        tmp_path, '[provider]\nname = "box"\nmodel = "big"\n[providers.box]\nbase_url = "http://b/v1"\n'
    )

    house.commit(Decision(provider="local"))

    assert house.text == '[provider]\nname = "local"\n[providers.box]\nbase_url = "http://b/v1"\n'


def test_a_model_without_tools_is_not_offered_any(tmp_path: Path) -> None:
    house = House(tmp_path, None)

    house.commit(Decision(provider="ollama", base_url="http://h/v1", model="m", takes_tools=False))

    assert load_settings(house.home, {"HOME": "/"}).providers["ollama"].takes_tools is False


def test_another_model_that_takes_tools_is_offered_them_again(tmp_path: Path) -> None:
    small = Decision(provider="ollama", base_url="http://h/v1", model="small", takes_tools=False)
    House(tmp_path, None).commit(small)
    big = Decision(
        provider="ollama", base_url="http://h/v1", model="big", tried=Tried(status="ok", message="")
    )

    House(tmp_path, None).commit(big)

    settings = load_settings(Home(tmp_path), {"HOME": "/"}).providers["ollama"]
    assert (settings.model, settings.takes_tools) == ("big", True)


def test_the_owners_word_that_a_model_takes_no_tools_stays(tmp_path: Path) -> None:
    text = '[providers.box]\nbase_url = "http://b/v1"\nmodel = "m"\ntakes_tools = false\n'
    same = Decision(provider="box", base_url="http://b/v1", model="m", tried=Tried(status="ok", message=""))

    House(tmp_path, text).commit(same)

    assert load_settings(Home(tmp_path), {"HOME": "/"}).providers["box"].takes_tools is False


def test_a_file_that_someone_changed_meanwhile_is_left_and_the_old_key_stays(tmp_path: Path) -> None:
    house = House(tmp_path, HAND_WRITTEN)
    house.stores.set("openai", Secret("sk-old"))
    theirs = HAND_WRITTEN + "\n# they were here\n"
    house.home.config.write_text(theirs)

    with pytest.raises(ConfigChanged):
        house.commit(OURS)

    assert house.text == theirs
    assert house.stores.get("openai").reveal() == "sk-old"


class Breaking:
    """A writer that fails or is interrupted."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def apply(self, edits: object, *, based_on: str | None) -> None:
        raise self.error


@pytest.mark.parametrize("error", [ConfigError("No space."), KeyboardInterrupt()])
def test_a_failed_write_takes_a_new_key_back(tmp_path: Path, error: BaseException) -> None:
    house = House(tmp_path, None)

    with pytest.raises(type(error)):
        house.commit(OURS, Breaking(error))

    assert house.stores.names() == []
    assert not house.home.config.exists()


def test_a_key_that_cannot_be_kept_leaves_the_settings(tmp_path: Path) -> None:
    house = House(tmp_path, HAND_WRITTEN)
    house.home.secrets.mkdir(mode=0o700)
    house.home.secrets.chmod(0o755)

    with pytest.raises(FermixError):
        house.commit(OURS)

    assert house.text == HAND_WRITTEN


def _fields(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in Decision.__slots__}
