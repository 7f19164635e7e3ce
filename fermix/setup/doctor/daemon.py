"""The daemon: whether it runs, and how it says its parts are."""

from __future__ import annotations

from typing import Any

from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.lease import is_held, named_holder
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("daemon")
_WELL = ("running", "ready")


def look(scene: Scene) -> list[Finding]:
    """Asks nothing new: reads the status it gave."""
    if scene.silence is not None:
        is_slow = scene.silence.code == "deadline"
        return [TOPIC.fail(scene.silence.message, "fermix restart" if is_slow else scene.silence.hint)]
    if scene.status is None:
        if is_held(scene.home) and (holder := named_holder(scene.home.lease)) and holder.is_alive:
            told = f"A fermix (pid {holder.pid}) holds the home, but nobody answers on its socket."
            return [TOPIC.fail(told, f"kill {holder.pid}; fermix start")]
        return [TOPIC.skipped("No daemon runs.", "fermix start")]
    troubles = [*_children(scene.status), *_checks(scene.status)]
    if troubles:
        return [TOPIC.fail(trouble, "fermix logs -n 50") for trouble in troubles]
    pid = scene.status.get("arbiter_pid") or scene.status.get("pid")
    return [TOPIC.ok(f"It runs (pid {pid}, {scene.status.get('mode')}) and all its parts are well.")]


def _children(status: Any) -> list[str]:
    """Any: whatever the daemon sent."""
    children = status.get("children")
    return [
        f"Its part '{child.get('name')}' is {child.get('state')}, {child.get('restarts') or 0} restarts: "
        f"{child.get('last_error') or 'no error was kept'}."
        for child in (children if isinstance(children, list) else [])
        if isinstance(child, dict) and child.get("state") not in _WELL
    ]


def _checks(status: Any) -> list[str]:
    checks = status.get("checks")
    return [
        f"Its {check.get('name')}: {check.get('detail')}."
        for check in (checks if isinstance(checks, list) else [])
        if isinstance(check, dict) and not check.get("is_ok")
    ]
