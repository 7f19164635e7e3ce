"""Reads back long tool results, of which a model was shown only a part."""

from __future__ import annotations

from fermix.capabilities.context import ToolContext
from fermix.capabilities.tool import tool
from fermix.errors import ToolFailed, ToolRetry
from fermix.trust import Policy

AROUND = 2
"""Lines shown before and after one that was found."""
MOST_FOUND = 50
LONGEST_LINE = 2_000


@tool(policy=Policy.READ_ONLY)
def tool_result_recall(
    ctx: ToolContext, id: str, query: str = "", first_line: int = 1, lines: int = 100
) -> str:
    """Read more of an earlier tool result that was cut, by lines or by the words in them.

    id: The id that stands where the result was cut.
    query: Show only lines with these words, and their neighbours; empty shows a range.
    first_line: The first line wanted, from 1.
    lines: How many lines at the most, 1 to 2000.
    """
    if first_line < 1 or not 1 <= lines <= 2000:
        raise ToolRetry(f"first_line is {first_line} and lines {lines}; expected from 1, and 1 to 2000.")
    stored = ctx.recall(id)
    if stored is None:
        raise ToolFailed(
            f"No result {id!r} of this conversation is kept, or no longer. Run the tool again."
        )
    text = stored.text.split("\n")
    end = " (its end was too long to be kept)" if stored.is_cut else ""
    if not query.strip():
        shown = range(first_line - 1, min(len(text), first_line - 1 + lines))
        left = len(text) - first_line + 1 - len(shown)
        head = f"[{stored.tool}: {len(text)} lines{end}"
        more = f"; {left} more behind these]" if left > 0 and shown else "]"
        return "\n".join([head + more, *(_line(text, index) for index in shown)])
    return _found(text, query.strip().casefold(), first_line - 1, lines, head=f"{stored.tool}{end}")


def _found(text: list[str], query: str, first: int, most: int, *, head: str) -> str:
    """The lines with the query and those around them."""
    hits = [index for index in range(first, len(text)) if query in text[index].casefold()]
    if not hits:
        return f"[{head}: none of {len(text)} lines holds {query!r}]"
    chosen: dict[int, None] = {}
    for index in hits[:MOST_FOUND]:
        for near in range(max(0, index - AROUND), min(len(text), index + AROUND + 1)):
            if len(chosen) < most:
                chosen[near] = None
    lines = [f"[{head}: {len(hits)} of {len(text)} lines hold {query!r}]"]
    before = -1
    for index in chosen:
        if before >= 0 and index > before + 1:
            lines.append("…")
        lines.append(_line(text, index))
        before = index
    if len(hits) > MOST_FOUND:
        lines.append(f"[{len(hits) - MOST_FOUND} more; go on with first_line={hits[MOST_FOUND] + 1}]")
    return "\n".join(lines)


def _line(text: list[str], index: int) -> str:
    line = text[index].removesuffix("\r")
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]}… ({len(line) - LONGEST_LINE} characters more)"
    return f"{index + 1}\t{line}"
