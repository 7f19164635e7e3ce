"""What models were asked, what it took and what it cost: stored call by call, summed for budgets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fermix.usage.calls import record_within, spent_within
    from fermix.usage.ledger import Ledger
    from fermix.usage.report import By, UsageLine, UsageStore
    from fermix.usage.spent import Spent

__all__ = ["By", "Ledger", "Spent", "UsageLine", "UsageStore", "record_within", "spent_within"]

_HOMES = {
    "By": "fermix.usage.report",
    "Ledger": "fermix.usage.ledger",
    "Spent": "fermix.usage.spent",
    "UsageLine": "fermix.usage.report",
    "UsageStore": "fermix.usage.report",
    "record_within": "fermix.usage.calls",
    "spent_within": "fermix.usage.calls",
}


def __getattr__(name: str) -> object:
    # Client processes import fermix.usage.words and must load neither gevent nor peewee.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
