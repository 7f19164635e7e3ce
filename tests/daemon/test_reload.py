"""What a reload finds changed, takes up and leaves for a restart; all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fermix.auth.devices import Device, DeviceTokens
from fermix.daemon.exposure import exposure_step
from fermix.daemon.reload import LiveSettings, Outcome, Reload, Step, merged
from fermix.daemon.sections import Settings, load_settings
from fermix.errors import ConfigError, ProviderError, SettingInvalid
from fermix.paths import Home

Write = Callable[[str], Home]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes config.toml into one home."""

    def one(text: str) -> Home:
        config = tmp_path / "config.toml"
        config.write_text(text)
        config.chmod(0o600)
        return Home(tmp_path)

    return one


def read(home: Home) -> Settings:
    return load_settings(home, os.environ)


def reloading(home: Home, *steps: Step) -> tuple[LiveSettings, Reload]:
    live = LiveSettings(read(home))
    return live, Reload(live, home, os.environ, steps=steps)


def test_changed_settings_are_named_in_the_order_of_the_schema(write: Write) -> None:
    old = read(write("[logs]\nfiles = 3\n[agent]\nsteps_per_turn = 3\n"))
    new = read(write("[logs]\nfiles = 4\n[agent]\nsteps_per_turn = 4\ninstructions = 'x'\n"))

    _, outcome = merged(old, new)

    assert outcome.applied == ("agent.steps_per_turn", "agent.instructions", "logs.files")
    assert outcome.needs_restart == ()


def test_setting_that_needs_a_restart_keeps_its_value_and_is_named_each_time(write: Write) -> None:
    home = write("[http]\nport = 4031\nbody_limit_bytes = 2000\n")
    live, reload = reloading(home)
    write("[http]\nport = 4032\nbody_limit_bytes = 3000\n")

    first, second = reload.run(), reload.run()

    assert (first.applied, first.needs_restart) == (("http.body_limit_bytes",), ("http.port",))
    assert (second.applied, second.needs_restart) == ((), ("http.port",))
    assert (live.now.http.port, live.now.http.body_limit_bytes) == (4031, 3000)


def test_named_tables_that_come_go_and_change_are_told_by_their_keys(write: Write) -> None:
    old = read(write('[providers.a]\nmodel = "1"\n[providers.b]\nmodel = "1"\n[providers.empty]\n'))
    new = read(write('[providers.a]\nmodel = "2"\n[providers.c]\ntimeout_s = 5\n'))

    settings, outcome = merged(old, new)

    assert outcome.applied == (
        "providers.a.model",
        "providers.b.model",
        "providers.c.timeout_s",
        "providers.empty",
    )
    assert set(settings.providers) == {"a", "c"}


def test_unchanged_file_runs_no_step(write: Write) -> None:
    home = write("[agent]\nsteps_per_turn = 3\n")
    asked: list[Settings] = []
    _, reload = reloading(home, Step(("agent",), lambda new: lambda: asked.append(new)))
    write("# other words\n[agent]\nsteps_per_turn = 3\n")

    outcome = reload.run()

    nothing: dict[str, object] = {"changed": [], "applied": [], "needs_restart": [], "also": []}
    assert outcome.facts() == {**nothing, "unchanged": True}
    assert (asked, str(outcome)) == ([], "Nothing changed in config.toml")


def test_only_the_steps_of_changed_sections_run_and_after_the_settings_count(write: Write) -> None:
    home = write("")
    seen: list[object] = []
    live, reload = reloading(
        home,
        Step(("logs", "agent"), lambda new: lambda: seen.append(live.now is new)),
        Step(("http",), lambda new: lambda: seen.append("http")),
    )
    write("[agent]\nsteps_per_turn = 3\n")

    reload.run()

    assert seen == [True]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[agent]\nsteps_per_turn = 0\n", SettingInvalid),
        ("[agent]\nsteps_per_turn = 4\n[nonsense]\n", ConfigError),
        ("[agent\n", ConfigError),
        ('[provider]\nname = "nowhere"\n', SettingInvalid),
        ('[provider]\nname = "a"\n[providers.a]\nmodel = "1"\n', SettingInvalid),
    ],
)
def test_bad_file_changes_nothing(write: Write, text: str, error: type[Exception]) -> None:
    home = write("[agent]\nsteps_per_turn = 3\n")
    live, reload = reloading(home)
    before = live.now
    write(text)

    with pytest.raises(error):
        reload.run()

    assert live.now is before


def test_step_that_cannot_get_ready_keeps_all_the_others_from_changing(write: Write) -> None:
    home = write("")
    taken: list[str] = []

    def refuse(new: Settings) -> Callable[[], None]:
        raise ProviderError("It cannot be had.")

    live, reload = reloading(
        home, Step(("agent",), lambda new: lambda: taken.append("agent")), Step(("logs",), refuse)
    )
    before = live.now
    write("[agent]\nsteps_per_turn = 3\n[logs]\nfiles = 2\n")

    with pytest.raises(ProviderError):
        reload.run()

    assert (live.now, taken) == (before, [])


def test_outcome_reads_like_a_log_line() -> None:
    outcome = Outcome(("agent.instructions", "logs.files"), ("http.port",))

    assert str(outcome) == "Settings applied: agent.instructions, logs.files. Needs a restart: http.port"


def test_reload_that_would_let_tokens_cross_the_network_in_the_open_is_refused(write: Write) -> None:
    home = write('[http]\nhost = "192.0.2.1"\nproxies = ["192.0.2.9"]\n')
    DeviceTokens(home.tokens).add(Device(name="phone", digest=bytes(32), created_ms=1))
    live, reload = reloading(home, exposure_step(home))
    before = live.now

    write('[http]\nhost = "192.0.2.1"\nnames = ["box.example"]\n')
    with pytest.raises(ConfigError, match="tokens would cross the network unencrypted"):
        reload.run()
    refused = live.now
    write('[http]\nhost = "192.0.2.1"\nproxies = ["192.0.2.8"]\n')

    assert refused is before
    assert reload.run().applied == ("http.proxies",)
