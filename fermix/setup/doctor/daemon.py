"""The daemon: whether it runs, and how it says its parts are."""

from __future__ import annotations

from typing import Any

from fermix.process.locks import is_locked
from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.lease import named_holder
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("daemon")
_HINT = "fermix logs -n 50"
_WELL = ("running", "ready")


def look(scene: Scene) -> list[Finding]:
    """Asks nothing new: reads the status it gave."""
    if scene.silence is not None:
        is_slow = scene.silence.code == "deadline"
        return [TOPIC.fail(scene.silence.message, "fermix restart" if is_slow else scene.silence.hint)]
    if scene.status is None:
        if is_locked(scene.home.lease) and (holder := named_holder(scene.home.lease)) and holder.is_alive:
            told = f"A fermix (pid {holder.pid}) holds the home, but nobody answers on its socket."
            return [TOPIC.fail(told, f"kill {holder.pid}; fermix start")]
        return [TOPIC.skipped("No daemon runs.", "fermix start")]
    troubles = [TOPIC.fail(told, _HINT) for told in (*_children(scene.status), *_checks(scene.status))]
    troubles += [TOPIC.warn(told, _HINT) for told in _restarted(scene.status)]
    if troubles:
        return troubles
    pid = scene.status.get("arbiter_pid") or scene.status.get("pid")
    return [TOPIC.ok(f"It runs (pid {pid}, {scene.status.get('mode')}) and all its parts are well.")]


def _parts(status: Any) -> list[dict[str, Any]]:
    """Any: whatever the daemon sent."""
    children = status.get("children")
    return [each for each in (children if isinstance(children, list) else []) if isinstance(each, dict)]


def _children(status: Any) -> list[str]:
    return [
        f"Its part '{child.get('name')}' is {child.get('state')}: "
        f"{child.get('last_error') or 'no error was kept'}."
        for child in _parts(status)
        if child.get("state") not in _WELL
    ]


def _restarted(status: Any) -> list[str]:
    return [
        f"Its part '{child.get('name')}' was restarted {child['restarts']} times: "
        f"{child.get('last_error') or 'no error was kept'}."
        for child in _parts(status)
        if child.get("state") in _WELL and child.get("restarts")
    ]


def _checks(status: Any) -> list[str]:
    checks = status.get("checks")
    return [
        f"Its {check.get('name')}: {str(check.get('detail')).removesuffix('.')}."
        for check in (checks if isinstance(checks, list) else [])
        if isinstance(check, dict) and not check.get("is_ok")
    ]
