"""The whole settings schema, from each package's settings.py and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fermix.agent.settings import AgentSettings
from fermix.config.decoding import decode
from fermix.config.schema import Schema
from fermix.config.source import read_source
from fermix.daemon.settings import RuntimeSettings
from fermix.db.settings import DatabaseSettings
from fermix.gateway.settings import GatewaySettings
from fermix.ipc.settings import ControlSettings
from fermix.paths import Home
from fermix.process.settings import CommandSettings
from fermix.providers.settings import LocalModelSettings, NamedProviderSettings, ProviderSettings
from fermix.telemetry.settings import LogSettings
from fermix.web.settings import HttpSettings

SCHEMA = Schema(
    (
        AgentSettings,
        GatewaySettings,
        ProviderSettings,
        NamedProviderSettings,
        LocalModelSettings,
        CommandSettings,
        DatabaseSettings,
        ControlSettings,
        HttpSettings,
        RuntimeSettings,
        LogSettings,
    )
)
"""In the order `config show` and the README list the sections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """config.toml with the defaults filled in: one field per section, named as the section is."""

    agent: AgentSettings
    gateway: GatewaySettings
    provider: ProviderSettings
    providers: Mapping[str, NamedProviderSettings]
    local_model: LocalModelSettings
    commands: CommandSettings
    database: DatabaseSettings
    control: ControlSettings
    http: HttpSettings
    runtime: RuntimeSettings
    logs: LogSettings


def load_settings(home: Home, environment: Mapping[str, str]) -> Settings:
    """What the home's config.toml says now; a missing file means all defaults.

    environment: only its HOME is read, for paths that start with `~`.
    Raises: ConfigError, SettingUnknown, SettingInvalid or HomeUnsafe; never half of the settings,
    so whoever reloads keeps those it has.
    """
    decoded = decode(SCHEMA, read_source(home.config), user_home=user_home(environment))
    if decoded.problems:
        raise decoded.problems[0]
    return Settings(
        agent=decoded.one(AgentSettings),
        gateway=decoded.one(GatewaySettings),
        provider=decoded.one(ProviderSettings),
        providers=decoded.named(NamedProviderSettings),
        local_model=decoded.one(LocalModelSettings),
        commands=decoded.one(CommandSettings),
        database=decoded.one(DatabaseSettings),
        control=decoded.one(ControlSettings),
        http=decoded.one(HttpSettings),
        runtime=decoded.one(RuntimeSettings),
        logs=decoded.one(LogSettings),
    )


def user_home(environment: Mapping[str, str]) -> str:
    """What `~` stands for."""
    return environment.get("HOME") or str(Path.home())
