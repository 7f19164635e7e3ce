"""The whole settings schema, from each package's settings.py and nothing else."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fermix.agent.settings import AgentSettings, BudgetSettings
from fermix.config.declare import Kind
from fermix.config.decoding import Decoded, decode
from fermix.config.home import check_private
from fermix.config.schema import Schema
from fermix.config.source import read_source
from fermix.daemon.settings import RuntimeSettings
from fermix.db.settings import DatabaseSettings
from fermix.errors import ConfigError, FermixError, SettingInvalid
from fermix.gateway.settings import GatewaySettings
from fermix.ipc.settings import ControlSettings
from fermix.paths import Home
from fermix.process.settings import CommandSettings
from fermix.providers.settings import (
    ANY_SERVER,
    LOCAL,
    VENDOR_NAMES,
    LocalModelSettings,
    NamedProviderSettings,
    ProviderSettings,
)
from fermix.secrets import SecretStores
from fermix.secrets.settings import SecretSettings
from fermix.telemetry.settings import LogSettings
from fermix.web.settings import HttpSettings

SCHEMA = Schema(
    (
        AgentSettings,
        BudgetSettings,
        GatewaySettings,
        ProviderSettings,
        NamedProviderSettings,
        LocalModelSettings,
        SecretSettings,
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
    budget: BudgetSettings
    gateway: GatewaySettings
    provider: ProviderSettings
    providers: Mapping[str, NamedProviderSettings]
    local_model: LocalModelSettings
    secrets: SecretSettings
    commands: CommandSettings
    database: DatabaseSettings
    control: ControlSettings
    http: HttpSettings
    runtime: RuntimeSettings
    logs: LogSettings


def load_settings(home: Home, environment: Mapping[str, str], *, is_consistent: bool = False) -> Settings:
    """What the home's config.toml says now; a missing file means all defaults.

    environment: only its HOME is read, for paths that start with `~`.
    is_consistent: also refuse settings that do not go with each other.
    Raises: ConfigError, SettingUnknown, SettingInvalid or HomeUnsafe; never half of the settings,
    so whoever reloads keeps those it has.
    """
    decoded = decode(SCHEMA, read_source(home.config), user_home=user_home(environment))
    for problem in (*decoded.problems, *(_contradictions(decoded) if is_consistent else ())):
        raise problem
    return _settings(decoded)


def find_problems(home: Home, environment: Mapping[str, str]) -> list[FermixError]:
    """Everything that is wrong with the home's settings and the secrets they name."""
    try:
        if home.root.exists():
            check_private(home.root)
        source = read_source(home.config)
    except ConfigError as exc:
        return [exc]
    decoded = decode(SCHEMA, source, user_home=user_home(environment))
    stores = SecretStores(home, environment, settings=decoded.one(SecretSettings))
    problems: list[FermixError] = [*decoded.problems, *_contradictions(decoded)]
    for reference in _references(decoded):
        try:
            stores.resolve(reference)
        except ConfigError as exc:
            problems.append(exc)
    return problems


def user_home(environment: Mapping[str, str]) -> str:
    """What `~` stands for."""
    return environment.get("HOME") or str(Path.home())


def _settings(decoded: Decoded) -> Settings:
    return Settings(
        agent=decoded.one(AgentSettings),
        budget=decoded.one(BudgetSettings),
        gateway=decoded.one(GatewaySettings),
        provider=decoded.one(ProviderSettings),
        providers=decoded.named(NamedProviderSettings),
        local_model=decoded.one(LocalModelSettings),
        secrets=decoded.one(SecretSettings),
        commands=decoded.one(CommandSettings),
        database=decoded.one(DatabaseSettings),
        control=decoded.one(ControlSettings),
        http=decoded.one(HttpSettings),
        runtime=decoded.one(RuntimeSettings),
        logs=decoded.one(LogSettings),
    )


def _contradictions(decoded: Decoded) -> Iterator[ConfigError]:
    """Settings that are good by themselves and not together: set one after the other, they may pass by."""
    chosen, named = decoded.one(ProviderSettings), decoded.named(NamedProviderSettings)
    name, known = chosen.name, [LOCAL, *named]
    table = named.get(name)
    is_known = name in VENDOR_NAMES and name != ANY_SERVER
    if name not in known and not is_known:
        near = difflib.get_close_matches(name, known, n=1)
        answer = f"Did you mean {near[0]!r}?" if near else f"Available: {', '.join(known)}."
        yield SettingInvalid(
            f"'provider.name' is {name!r}, but there is no [providers.{name}]. {answer}",
            hint=f"fermix config set providers.{name}.base_url https://HOST/v1",
        )
    elif name != LOCAL:
        vendor = (table.vendor if table else "") or (name if is_known else ANY_SERVER)
        if vendor == ANY_SERVER and not (table and table.base_url):
            yield SettingInvalid(
                f"The provider {name!r} has no address.",
                hint=f"fermix config set providers.{name}.base_url https://HOST/v1",
            )
        if not (chosen.model or (table and table.model)):
            yield SettingInvalid(
                f"The provider {name!r} has no model.",
                hint=f"fermix config set providers.{name}.model MODEL",
            )


def _references(decoded: Decoded) -> Iterator[str]:
    for path, table in decoded.tables.items():
        section = SCHEMA.section_at(path)
        for setting in section.settings if section else ():
            reference = getattr(table, setting.name)
            if setting.kind is Kind.REFERENCE and reference is not None:
                yield reference
