"""Settings that change while the daemon runs: what differs, what takes it up, what waits for a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fermix.config.declare import Section
from fermix.daemon.sections import SCHEMA, Settings, load_settings
from fermix.paths import Home

Commit = Callable[[], str | None]
"""Puts to work what was got ready; cannot fail.

Says in a sentence what it took up that stands in no setting; None when there was nothing of that.
"""


class LiveSettings:
    """The settings that count in this process, replaced as a whole."""

    def __init__(self, settings: Settings) -> None:
        self.now = settings


@dataclass(frozen=True, slots=True)
class Step:
    """What a part must do when one of its sections changed; parts that ask each time need none."""

    sections: tuple[str, ...] | None
    """None: at every reload, whatever changed."""
    prepare: Callable[[Settings], Commit]
    """Gets ready for these settings.

    Contract: what cannot work raises FermixError here and leaves everything as it is. Neither this nor
    the commit changes `LiveSettings`, which is replaced between the two.
    """


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reload found and did; settings by their keys, in the schema's order."""

    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]
    """They differ from what the process was started with, and stay so until it is started again."""
    also: tuple[str, ...] = ()
    """What else was taken up, in sentences."""

    @property
    def changed(self) -> tuple[str, ...]:
        """All that differ from what counted before."""
        return (*self.applied, *self.needs_restart)

    def facts(self) -> dict[str, object]:
        """For the control socket and --json."""
        return {
            "changed": list(self.changed),
            "applied": list(self.applied),
            "needs_restart": list(self.needs_restart),
            "also": list(self.also),
            "unchanged": not (self.changed or self.also),
        }

    def __str__(self) -> str:
        if not self.changed:
            return " ".join(("Nothing changed in config.toml.", *self.also)).removesuffix(".")
        told = [f"Settings applied: {', '.join(self.applied)}"] if self.applied else []
        told += [f"Needs a restart: {', '.join(self.needs_restart)}"] if self.needs_restart else []
        return ". ".join((*told, *(each.removesuffix(".") for each in self.also)))


class Reload:
    """Brings the settings of one process up to its config.toml."""

    def __init__(
        self, live: LiveSettings, home: Home, environment: Mapping[str, str], *, steps: Sequence[Step]
    ) -> None:
        self._live = live
        self._home = home
        self._environment = environment
        self._steps = steps

    def run(self) -> Outcome:
        """Take up what the file says now: all of it or nothing.

        Contract: one at a time; each reads the file anew, so of two changes the later one stays.
        Raises: ConfigError for a bad file, and what a part says that cannot work with it.
        """
        fresh = load_settings(self._home, self._environment, is_consistent=True)
        settings, outcome = merged(self._live.now, fresh)
        sections = {key.partition(".")[0] for key in outcome.applied}
        commits = [
            step.prepare(settings)
            for step in self._steps
            if step.sections is None or sections & {*step.sections}
        ]
        self._live.now = settings
        also = [commit() for commit in commits]
        return replace(outcome, also=tuple(told for told in also if told))


def merged(running: Settings, fresh: Settings) -> tuple[Settings, Outcome]:
    """`fresh`, but with the running value of each setting that needs a restart; and what differs."""
    applied: list[str] = []
    waiting: list[str] = []
    taken: dict[str, Any] = {}
    for section in SCHEMA.sections:
        old, new = getattr(running, section.name), getattr(fresh, section.name)
        if section.is_named:
            taken[section.name] = new
            applied += _changed_tables(section, old, new)
            continue
        changed = list(_changed(section, old, new))
        kept = {name: getattr(old, name) for name in changed if _needs_restart(section, name)}
        try:
            taken[section.name] = replace(new, **kept)
        except ValueError:  # the new ones do not go with the old ones that stay: all wait together
            taken[section.name], kept = old, dict.fromkeys(changed)
        applied += [f"{section.name}.{name}" for name in changed if name not in kept]
        waiting += [f"{section.name}.{name}" for name in kept]
    return Settings(**taken), Outcome(tuple(applied), tuple(waiting))


def _changed_tables(
    section: Section, old: Mapping[str, object], new: Mapping[str, object]
) -> Iterator[str]:
    """Keys that differ in the owner's named tables; a table that came or went empty is a key itself."""
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        keys = [
            f"{section.name}.{name}.{each}"
            for each in _changed(section, before or section.make(), after or section.make())
        ]
        is_only_there = not keys and (before is None or after is None)
        yield from [f"{section.name}.{name}"] if is_only_there else keys


def _changed(section: Section, old: object, new: object) -> Iterator[str]:
    return (each.name for each in section.settings if getattr(old, each.name) != getattr(new, each.name))


def _needs_restart(section: Section, name: str) -> bool:
    return next(each.needs_restart for each in section.settings if each.name == name)
