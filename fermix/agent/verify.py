"""Holds the final words against what is recorded: failed calls, open steps, deeds that never were.

Pure and quick, and careful: it speaks only where the record contradicts the words, or where they keep
silent about a failed deed. Reading that failed is not told; what was read instead counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fermix.agent.outcome import Outcome
from fermix.agent.plan import Plan

MOST_TOLD = 5
# Compiled when first looked for, and kept by `re`: a daemon that only waits does without them.
_ADMITS = (
    r"\b(fail\w*|error\w*|unable|could\s?n[o']t|could not|cannot|can't|couldn['’]t|did\s?n['’]t|did not|"
    r"was\s?n['’]t|not (?:be|been|able|possible|work\w*|found|allowed)|without success|unsuccessful\w*|"
    r"denied|refused|interrupt\w*|unterbrochen\w*|sorry|g[ai]ve up|problem\w*|broken|wrong|timed out|"
    r"fehl\w*|nicht|leider|konnte|verweigert|misslungen|échou\w*|erreur\w*|impossible|"
    r"error(?:es)?|fall[óo]\w*|no pud\w*|non\s+riuscit\w*|errore|falh\w*|mislukt|niet)\b"
)
_SUCCEEDS = (
    r"\b(success\w*|succeed\w*|passe[sd]|works?|worked|fixed|installed|built|deployed|completed|done|"
    r"erfolgreich|geklappt|erledigt|fertig)\b"
)
_FINISHED = (
    r"\b(all (?:steps|done|tasks|of it)|everything (?:is|was|has been)|(?:is|are) (?:all )?(?:done|"
    r"finished|completed?)|i(?:'ve| have) (?:finished|completed)|fertig|alles erledigt|abgeschlossen)\b"
)
_NOT = r"\b(not|n['’]t|still|left|open|remain\w*|next|partly|nicht|noch|teilweise)\b"
_CLAIMS = (
    r"\bI(?:['’]ve| have)? (?:just |now |also |successfully )*"
    r"(created|wrote|written|saved|deleted|removed|renamed|moved|edited|updated|changed|installed|ran|"
    r"executed|run|started|stopped|sent|overwrote|appended)\b"
    r"[^.!?\n]*?(?:`[^`\n]+`|\b[\w-]+\.[a-z]{1,5}\b|(?:^|\s)~?/[\w./-]+|\b(?:file|files|folder|directory|"
    r"command|script|package|service)\b)"
)


def correction(text: str, outcomes: Sequence[Outcome], plan: Plan | None, *, has_acted: bool) -> str | None:
    """What must be added to the final words; None when the record agrees with them.

    `has_acted`: whether a tool that changes things ran before in what the model is shown, so that the words
    may mean that.
    """
    found: list[str] = []
    failed = _failed_deeds(outcomes)
    if failed and not _found(_ADMITS, text):
        found += [f"{one.words()} did not work: {one.reason()}" for one in failed[-MOST_TOLD:]]
    last = next((one for one in reversed(outcomes) if one.acts), None)
    if last and (ending := last.ended_badly) and _found(_SUCCEEDS, text) and not _found(_ADMITS, text):
        found.append(f"{last.words()} did not succeed: {ending}")
    if not has_acted and (claim := _found(_CLAIMS, text)):
        found.append(f"nothing was run or changed in this turn, whatever “{_short(claim[0])}” says")
    if plan is not None and plan.left and _found(_FINISHED, text) and not _found(_NOT, text):
        found.append("of the plan is still open: " + "; ".join(plan.left[:MOST_TOLD]))
    if not found:
        return None
    return "**Correction** by fermix, from its own record:\n" + "\n".join(f"- {line}" for line in found)


def _found(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE)


def _failed_deeds(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Calls of tools that change things which failed and were not made good by that tool later."""
    failed: dict[str, Outcome] = {}
    for outcome in outcomes:
        if not outcome.acts:
            continue
        if outcome.result.is_error:
            failed[outcome.call.name] = outcome
        else:
            failed.pop(outcome.call.name, None)
    return list(failed.values())


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
