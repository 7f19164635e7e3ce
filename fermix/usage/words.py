"""Tokens and money as people read them; what is not known is said to be unknown."""

from __future__ import annotations

from fermix.usage.spent import Spent

MICRO = 1_000_000


def money(micro_usd: int) -> str:
    """`$12.30`, `$0.0123`, `$0`: more decimals the less it is, and never a zero for something."""
    if micro_usd == 0:
        return "$0"
    decimals = 2 if micro_usd >= MICRO else 4 if micro_usd >= 100 else 6
    return f"${micro_usd / MICRO:,.{decimals}f}"


def cost(spent: Spent) -> str:
    """What it cost, as far as the prices of all its calls are known."""
    if not spent.unpriced:
        return money(spent.priced_micro_usd)
    if spent.unpriced == spent.calls:
        return "cost unknown"
    calls = f"{spent.unpriced:,} call{'s' * (spent.unpriced > 1)}"
    return f"at least {money(spent.priced_micro_usd)} (price of {calls} unknown)"


def sentence(spent: Spent) -> str:
    """The whole of it in one line."""
    if not spent.calls:
        return "no calls"
    used = spent.usage
    about = "about " if spent.estimated else ""
    cached = f" ({used.cached_tokens:,} from the cache)" if used.cached_tokens else ""
    calls = f"{spent.calls:,} call{'s' * (spent.calls > 1)}"
    return (
        f"{calls}, {about}{used.input_tokens:,} tokens read{cached}, "
        f"{used.output_tokens:,} written, {cost(spent)}"
    )
