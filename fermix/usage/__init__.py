"""What models were asked, what it took and what it cost: stored call by call, summed for budgets."""

from fermix.usage.calls import record_within, spent_within
from fermix.usage.ledger import Ledger
from fermix.usage.report import By, UsageLine, UsageStore
from fermix.usage.spent import Spent

__all__ = ["By", "Ledger", "Spent", "UsageLine", "UsageStore", "record_within", "spent_within"]
