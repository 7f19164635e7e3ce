"""The conversation: who answers, with which key or address, tried for real, and the owner's name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

from fermix.config.references import NAME_EXPECTED, is_secret_name
from fermix.errors import AddressRefused, OwnerError, UsageError
from fermix.net.address import parse_base
from fermix.providers.build import SIGN_INS
from fermix.providers.settings import LOCAL, VENDOR_NAMES
from fermix.secret import Secret
from fermix.setup.wizard.port import Asker, Attempt, Decision, Given, Present, Probe, Table, Tried
from fermix.setup.wizard.vendors import OLLAMA, OTHER, OTHER_TABLE, VENDORS, Vendor, vendor_named

ANOTHER_KEY = "Another key"
ANOTHER_ADDRESS = "Another address"
ANOTHER_MODEL = "Another model"
TRY_AGAIN = "Try again"
ANOTHER_PROVIDER = "Another provider"
KEEP_ANYWAY = "Keep it as it is"

_FIRST_REPAIR = {
    "auth": ANOTHER_KEY,
    "address": ANOTHER_ADDRESS,
    "model_unknown": ANOTHER_MODEL,
    "quota": TRY_AGAIN,
    "rate_limited": TRY_AGAIN,
    "timeout": TRY_AGAIN,
    "failed": TRY_AGAIN,
}
_SHOWN_MODELS = 8


@dataclass(frozen=True, slots=True)
class _Draft:
    """The provider as answered so far."""

    name: str
    vendor: Vendor | None
    base_url: str | None
    model: str | None
    key: Secret | None
    """Typed or given anew; None leaves the present one."""

    @property
    def label(self) -> str:
        return self.vendor.label.partition(" (")[0] if self.vendor else self.name


class Wizard:
    """Asks what flags did not say; without a person what is missing is an error.

    `present_key` gives the key behind a table's reference; None when there is none.
    """

    def __init__(
        self,
        present: Present,
        given: Given,
        *,
        asker: Asker | None,
        probe: Probe,
        present_key: Callable[[Table], Secret | None],
    ) -> None:
        self._present = present
        self._given = given
        self._asker = asker
        self._probe = probe
        self._present_key = present_key

    def decide(self) -> Decision:
        """What to write down.

        Raises: UsageError for a missing answer, OwnerError (`provider_STATUS`) when nobody is there to
        correct what the probe found, KeyboardInterrupt when the person leaves.
        """
        draft = self._drafted(self._provider())
        tried: Tried | None = None
        while not self._given.skips_probe:
            attempt = self._attempt(draft)
            tried = self._probe(attempt)
            if tried.is_good:
                draft = replace(draft, model=draft.model or tried.model)
                self._tell(f"{draft.label} answers with {tried.model} ({tried.latency_ms / 1000:.1f} s).")
                break
            corrected = self._corrected(draft, tried)
            if corrected is None:
                break
            draft = corrected
        draft = self._with_model(draft, tried)
        return Decision(
            provider=draft.name,
            base_url=self._own_address(draft),
            model=draft.model if draft.name != LOCAL else self._given.model,
            key=draft.key,
            takes_tools=tried.takes_tools if tried is not None and tried.is_good else True,
            owner_name=self._owner_name(),
            tried=tried,
        )

    def _own_address(self, draft: _Draft) -> str | None:
        """The address where it has to be written down: not the one its vendor has anyway."""
        table = self._present.tables.get(draft.name, Table())
        usual = draft.vendor.base_url if draft.vendor else None
        return draft.base_url if table.base_url or draft.base_url != usual else None

    def _provider(self) -> str:
        """The chosen name: a vendor's, or a table's."""
        given = self._given
        if given.provider is not None:
            return self._own_table() if given.provider == OTHER else self._checked(given.provider)
        if given.base_url is not None:
            return self._own_table()
        if self._asker is not None:
            return self._chosen_provider(self._asker)
        if self._present.provider is not None:
            return self._present.provider
        raise _missing("Who should answer?", "--provider NAME")

    def _checked(self, name: str) -> str:
        """A provider that was named by a flag: a vendor, a table that is set, or a new one with an address.

        Raises: UsageError.
        """
        known = [*(vendor.name for vendor in VENDORS), *self._present.tables]
        if name in known:
            return name
        if not is_secret_name(name):
            raise UsageError(f"A provider cannot be called {name[:80]!r}. Expected {NAME_EXPECTED}.")
        if self._given.base_url is not None:
            return name
        if name in SIGN_INS:
            raise UsageError(
                f"One signs in to {name!r} instead of keeping a key.", hint=f"fermix auth login {name}"
            )
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"Did you mean {near[0]!r}?" if near else f"Available: {', '.join(dict.fromkeys(known))}."
        raise UsageError(f"No provider named {name!r}. {meant}", hint="give a new one its --base-url")

    def _chosen_provider(self, asker: Asker) -> str:
        present = self._present
        offered = [vendor for vendor in VENDORS if self._is_offered(vendor)]
        names = [vendor.name for vendor in offered]
        preset = present.provider or (OLLAMA if OLLAMA in names else names[0])
        default = names.index(preset) if preset in names else names.index(OTHER)
        labels = [vendor.label for vendor in offered]
        chosen = names[asker.choose("Who should answer?", labels, default=default)]
        return self._own_table() if chosen == OTHER else chosen

    def _own_table(self) -> str:
        """The owner's own table in force, else a name for a new one."""
        in_force = self._present.provider
        return (
            in_force if in_force and in_force != LOCAL and vendor_named(in_force) is None else OTHER_TABLE
        )

    def _is_offered(self, vendor: Vendor) -> bool:
        in_force = self._present.provider
        if vendor.name == LOCAL:
            return self._present.has_built_in or in_force == LOCAL
        return vendor.name != OLLAMA or self._present.ollama_url is not None or in_force == OLLAMA

    def _drafted(self, name: str) -> _Draft:
        """The provider with its address and key: as given, as set, or as the person says now."""
        given, vendor = self._given, vendor_named(name)
        if name == LOCAL:
            return _Draft(name, vendor, None, None, None)
        table = self._present.tables.get(name, Table())
        is_ollama = vendor is not None and vendor.name == OLLAMA
        found = self._present.ollama_url if is_ollama else None
        usual = found or (vendor.base_url if vendor else None)
        base_url = given.base_url or table.base_url or usual
        if vendor is None and given.base_url is None:
            base_url = self._address(base_url)
        draft = _Draft(name, vendor, base_url, given.model or self._set_model(name, table), given.key)
        if vendor is not None and vendor.needs_key and draft.key is None:
            draft = replace(draft, key=self._key(draft, table))
        return draft

    def _set_model(self, name: str, table: Table) -> str | None:
        in_force = self._present.model if self._present.provider == name else None
        return in_force or table.model

    def _address(self, present: str | None) -> str:
        if self._asker is None:
            if present:
                return present
            raise _missing("At which address is it?", "--base-url https://HOST/v1")
        while True:
            address = self._asker.line("Its address, as in https://HOST/v1", present or "")
            if not address:
                self._asker.tell("An address is needed.")
                continue
            try:
                parse_base(address)
            except AddressRefused as refused:
                self._asker.tell(refused.message)
            else:
                return address

    def _key(self, draft: _Draft, table: Table) -> Secret | None:
        """A new key; None keeps the present one."""
        has_key = self._present_key(table) is not None
        if self._asker is None:
            if has_key:
                return None
            raise _missing(f"Which key has {draft.label}?", "--key-file FILE, --key-env VARIABLE")
        page = draft.vendor.key_page if draft.vendor else None
        where = f", from {page}" if page else ""
        keeps = "; Enter keeps the present one" if has_key else ""
        while True:
            typed = self._asker.hidden(f"Key for {draft.label}{where} (not shown{keeps})")
            if typed:
                return Secret(typed)
            if has_key:
                return None
            self._asker.tell("A key is needed.")

    def _attempt(self, draft: _Draft) -> Attempt:
        table = self._present.tables.get(draft.name, Table())
        key = draft.key or self._present_key(table)
        return Attempt(
            name=draft.label,
            base_url=draft.base_url,
            vendor=table.vendor or (draft.name if draft.name in VENDOR_NAMES else None),
            model=draft.model,
            key=key,
            preferred=draft.vendor.preferred if draft.vendor else (),
        )

    def _corrected(self, draft: _Draft, tried: Tried) -> _Draft | None:
        """The draft with just the wrong answer asked for again; None keeps it as it is.

        Raises: OwnerError when there is nobody to ask.
        """
        if self._asker is None:
            told = OwnerError(tried.message, hint=tried.hint)
            told.code = f"provider_{tried.status}"
            raise told
        # Only trying tells whether a server of one's own wants a key at all.
        wants_key = tried.status == "auth" and self._has_no_key(draft)
        if wants_key and (typed := self._asker.hidden(f"Key for {draft.label} (not shown)")):
            return replace(draft, key=Secret(typed))
        self._asker.tell("\n".join(filter(None, (tried.message, tried.hint))))
        ways = [TRY_AGAIN, ANOTHER_PROVIDER, KEEP_ANYWAY]
        if draft.name != LOCAL:
            ways = [ANOTHER_KEY, ANOTHER_ADDRESS, ANOTHER_MODEL, *ways]
        first = _FIRST_REPAIR.get(tried.status, TRY_AGAIN)
        default = ways.index(first) if first in ways else 0
        match ways[self._asker.choose("What now?", ways, default=default)]:
            case way if way == ANOTHER_KEY:
                typed = self._asker.hidden("Key (not shown)")
                return replace(draft, key=Secret(typed)) if typed else draft
            case way if way == ANOTHER_ADDRESS:
                return replace(draft, base_url=self._address(draft.base_url))
            case way if way == ANOTHER_MODEL:
                return replace(draft, model=self._named_model(self._asker, draft, tried))
            case way if way == ANOTHER_PROVIDER:
                return self._drafted(self._chosen_provider(self._asker))
            case way if way == KEEP_ANYWAY:
                return None
        return draft

    def _has_no_key(self, draft: _Draft) -> bool:
        present = self._present_key(self._present.tables.get(draft.name, Table()))
        return draft.vendor is None and draft.key is None and present is None

    def _named_model(self, asker: Asker, draft: _Draft, tried: Tried | None) -> str | None:
        models = tried.models if tried else ()
        if models and not (tried and tried.hint and ", " in tried.hint):
            more = f" and {len(models) - _SHOWN_MODELS} more" if len(models) > _SHOWN_MODELS else ""
            asker.tell(f"It has: {', '.join(models[:_SHOWN_MODELS])}{more}")
        return asker.line("Model", draft.model or "") or draft.model

    def _with_model(self, draft: _Draft, tried: Tried | None) -> _Draft:
        """A table needs a model, also when it was not tried."""
        if draft.name == LOCAL or draft.model:
            return draft
        preferred = draft.vendor.preferred if draft.vendor else ()
        if preferred:
            return replace(draft, model=preferred[0])
        while self._asker is not None:
            if model := self._named_model(self._asker, draft, tried):
                return replace(draft, model=model)
        raise _missing("Which model should be asked?", "--model MODEL")

    def _owner_name(self) -> str:
        present = self._present
        if self._given.owner_name is not None:
            return self._given.owner_name
        if self._asker is None:
            return present.owner_name
        return self._asker.line("Your name", present.owner_name or present.known_as)

    def _tell(self, text: str) -> None:
        if self._asker is not None:
            self._asker.tell(text)


def _missing(question: str, flag: str) -> UsageError:
    return UsageError(
        f"{question} There is no terminal to ask at, and no flag that says it.",
        hint=f"fermix setup {flag} … (fermix setup --help shows all flags)",
    )
