"""Writes a decision down: the secret first, then config.toml in one step, or nothing at all."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from fermix.config.edits import Edit
from fermix.config.references import secret_name
from fermix.config.source import Source
from fermix.config.writer import ConfigWriter
from fermix.errors import FermixError
from fermix.providers.settings import LOCAL
from fermix.secrets import SecretStores
from fermix.setup.wizard.port import Decision, Present, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What is different now."""

    keys: tuple[str, ...]
    """Settings that were changed, added or taken out; none when all stood there already."""
    secret: str | None = None
    """The name of the secret that was kept; None when no key was typed."""
    store: str | None = None


def commit(
    decision: Decision, present: Present, before: Source, *, writer: ConfigWriter, stores: SecretStores
) -> Written:
    """Write it down.

    before: config.toml as the decision was made on; a file that someone changed since is left alone.
    Raises: ConfigChanged, ConfigError, HomeUnsafe; then neither secret nor settings are changed.
    """
    table = present.tables.get(decision.provider, Table())
    name = (secret_name(table.api_key) if table.api_key else None) or _secret_name(decision.provider)
    edits = [edit for edit in _edits(decision, present, table, name) if not _stands(before, edit)]
    if decision.key is None:
        _apply(writer, edits, before)
        return Written(keys=_keys(edits))
    kept = stores.kept(name)
    try:
        store = stores.set(name, decision.key)
        _apply(writer, edits, before)
    except BaseException:  # Ctrl-C too: the old key must stay
        with suppress(FermixError):
            stores.remove(name) if kept is None else stores.set(name, kept)
        raise
    return Written(keys=_keys(edits), secret=name, store=store)


def _apply(writer: ConfigWriter, edits: list[Edit], before: Source) -> None:
    if edits:
        writer.apply(edits, based_on=before.digest)


def _edits(decision: Decision, present: Present, table: Table, secret: str) -> list[Edit]:
    """Only what the answers are about; everything else in the file is not touched."""
    edits = []
    is_own = decision.provider != LOCAL
    if is_own:
        path = ("providers", decision.provider)
        edits += [Edit((*path, "base_url"), decision.base_url), Edit((*path, "model"), decision.model)]
        if decision.key is not None and not table.api_key:
            edits.append(Edit((*path, "api_key"), f"@secret:{secret}"))
        if not decision.takes_tools:
            edits.append(Edit((*path, "takes_tools"), False))
        elif _is_another(decision, table):
            # What an earlier setup or its owner said was about another model.
            edits.append(Edit((*path, "takes_tools"), None))
    if is_own or present.provider is not None:
        edits.append(Edit(("provider", "name"), decision.provider))
    if present.model is not None and (is_own or present.provider != LOCAL):
        # It counts before the table's, and names a model of the provider that was in force.
        edits.append(Edit(("provider", "model"), decision.model))
    elif not is_own and decision.model is not None:
        edits.append(Edit(("provider", "model"), decision.model))
    if decision.owner_name != present.owner_name:
        edits.append(Edit(("agent", "owner_name"), decision.owner_name))
    return edits


def _is_another(decision: Decision, table: Table) -> bool:
    """Whether a model was tried, and took tools, that is not the table's."""
    was_tried = decision.tried is not None and decision.tried.is_good
    return was_tried and (decision.base_url, decision.model) != (table.base_url, table.model)


def _stands(source: Source, edit: Edit) -> bool:
    found: object = source.document
    for name in edit.path:
        if not isinstance(found, dict) or name not in found:
            return edit.value is None
        found = found[name]
    return found == edit.value


def _keys(edits: list[Edit]) -> tuple[str, ...]:
    return tuple(".".join(edit.path) for edit in edits)


def _secret_name(provider: str) -> str:
    """A secret's name is small letters; a table's may have capitals."""
    return provider.lower()
