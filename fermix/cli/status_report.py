"""What `fermix status` says. `__main__` comes here without click, whose import would take the longest."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from fermix import __version__
from fermix.cli.terminal import escaped, paint, print_json
from fermix.errors import NotRunning
from fermix.ipc.client import open_connection
from fermix.paths import Home
from fermix.setup.service.places import UNIT_NAME, find_installed

_TIMEOUT_S = 5.0


def report(home: Home, *, as_json: bool) -> None:
    """Ask the daemon how it is and print that.

    Raises: NotRunning, and what else keeps it from answering.
    """
    status = _ask(home)
    service = service_facts(home, status)
    if service is not None:
        status = {**status, "service": service}
    if as_json:
        print_json(status)
    else:
        for line in described(status):
            print(escaped(line))
    if status.get("version") != __version__:
        told = f"fermix: The daemon is version {status.get('version')}, this program is {__version__}."
        print(paint(escaped(told), "yellow", sys.stderr), file=sys.stderr)
        print("  try: fermix restart", file=sys.stderr)


def _ask(home: Home) -> dict[str, Any]:
    try:
        with open_connection(home.socket, timeout_s=_TIMEOUT_S) as connection:
            return connection.call("status", {}, _TIMEOUT_S)
    except NotRunning as error:
        found = find_installed(home.root, os.environ)
        if found is None:
            raise
        told = f"The daemon is not running; its {found.place.scope} service is '{found.place.unit}'."
        raise NotRunning(told, hint=error.hint) from error


def service_facts(home: Home, status: dict[str, Any]) -> dict[str, Any] | None:
    """What the home's unit is to the running daemon; None when no unit is installed. Reads files only."""
    found = find_installed(home.root, os.environ)
    if found is None:
        return None
    return {
        "scope": found.place.scope.value,
        "unit": str(found.place.unit),
        "enabled": os.path.lexists(found.place.link),
        "runs_it": _is_of_unit(status.get("arbiter_pid")),
    }


def _is_of_unit(pid: object) -> bool:
    """Whether a process is in the unit's control group."""
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return f"/{UNIT_NAME}" in groups


def described(status: dict[str, Any]) -> list[str]:
    """A status in words, one fact per line."""
    state = {"ready": "running", None: "running"}.get(status.get("state"), str(status.get("state")))
    up = duration(int(status.get("uptime_ms") or 0))
    lines = [f"fermix: {state} (pid {main_pid(status)}, version {status.get('version')}, up {up})"]
    scheme = "https" if status.get("https") else "http"
    facts = {
        "home": status.get("home"),
        "mode": "private, leaves when idle" if status.get("mode") == "private" else None,
        "http": f"{scheme}://{status['http']}" if status.get("http") else None,
        "unit": _service(status.get("service")),
        "model": _model(status.get("provider")),
        "turns": _turns(status.get("turns")),
        "parts": _parts(status.get("children")),
    }
    lines += [f"  {name:<6} {text}" for name, text in facts.items() if text]
    resting = _resting(status.get("providers"))
    return lines + _troubles(status.get("children")) + _failed_checks(status.get("checks")) + resting


def main_pid(status: dict[str, Any]) -> object:
    """The process that stands for the daemon: its supervisor, as in fermix.pid."""
    return status.get("arbiter_pid") or status.get("pid")


def duration(milliseconds: int) -> str:
    """A length of time as a person says it: `42 s`, `3 min`, `5 h 7 min`, `2 d 4 h`."""
    seconds = milliseconds // 1000
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if seconds < 60:
        return f"{seconds} s"
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"


def _model(provider: object) -> str | None:
    if not isinstance(provider, dict):
        return None
    return " / ".join(str(provider[key]) for key in ("name", "model") if provider.get(key)) or None


def _service(service: object) -> str | None:
    if not isinstance(service, dict):
        return None
    starts = {"user": "starts at login", "system": "starts at boot"}.get(str(service.get("scope")), "")
    enabled = starts if service.get("enabled") else "not enabled"
    runs = "" if service.get("runs_it") else ", this daemon was not started by it"
    return f"{service.get('scope')} service, {enabled}{runs}"


def _turns(turns: object) -> str | None:
    if not isinstance(turns, dict):
        return None
    return f"{turns.get('running', 0)} running, {turns.get('waiting', 0)} waiting"


def _parts(children: object) -> str | None:
    """The names of the parts that are well."""
    if not isinstance(children, list):
        return None
    return ", ".join(
        str(each.get("name")) for each in children if isinstance(each, dict) and _is_well(each)
    )


def _is_well(child: dict[str, Any]) -> bool:
    return child.get("state") in ("running", "ready") and not child.get("restarts")


def _failed_checks(checks: object) -> list[str]:
    """A line for everything that was looked at and is not well."""
    if not isinstance(checks, list):
        return []
    return [
        f"  ! {check.get('name')}: {check.get('detail')}"
        for check in checks
        if isinstance(check, dict) and not check.get("is_ok")
    ]


def _resting(providers: object) -> list[str]:
    """A line for every provider that is not asked now, with why and until when."""
    if not isinstance(providers, list):
        return []
    lines = []
    for each in providers:
        if isinstance(each, dict) and each.get("state") != "closed":
            rest_s = float(each.get("rest_s") or 0)
            when = f"in {duration(int(rest_s * 1000))}" if rest_s else "with the next message"
            lines.append(f"  ! provider {each.get('name')}: {each.get('reason')} (asked again {when})")
    return lines


def _troubles(children: object) -> list[str]:
    """A line for every part that failed, is down or was restarted."""
    if not isinstance(children, list):
        return []
    lines = []
    for child in children:
        if isinstance(child, dict) and not _is_well(child):
            told = f"  ! {child.get('name')}: {child.get('state')}, {child.get('restarts') or 0} restarts"
            lines.append(told + (f", {child['last_error']}" if child.get("last_error") else ""))
    return lines
