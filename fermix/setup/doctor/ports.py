"""The port of HTTP: ours to take, and open to nobody else."""

from __future__ import annotations

import ipaddress
import tomllib
from contextlib import suppress
from dataclasses import dataclass

from fermix.config.source import read_source
from fermix.errors import ConfigError
from fermix.process.proc import name_of
from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene, Wanted

TOPIC = Topic("ports")
_ANY = ("0.0.0.0", "::", "*")  # noqa: S104 (compared with, not listened on)


@dataclass(frozen=True, slots=True)
class Listener:
    """A TCP socket somebody listens on."""

    host: str
    port: int
    pid: int | None
    """None when the process is another user's."""


def look(scene: Scene) -> list[Finding]:
    """Who holds `http.port`, and who can reach what fermix listens on."""
    return judged(scene, listening())


def judged(scene: Scene, listeners: list[Listener]) -> list[Finding]:
    """The same for sockets in hand."""
    wanted = scene.wanted() or Wanted()
    findings = [
        *_open_to_others(scene, wanted, listeners),
        *_taken(scene, wanted, listeners),
    ]
    if findings:
        return findings
    if not wanted.http_enabled:
        return [TOPIC.ok("HTTP is turned off.")]
    if scene.status is not None and scene.status.get("http"):
        return [TOPIC.ok(f"The daemon listens on {scene.status['http']}, reached from this machine alone.")]
    port = f"{wanted.http_host}:{wanted.http_port}" if wanted.http_port else "Any free port"
    return [TOPIC.ok(f"{port} is free for the daemon.")]


def _taken(scene: Scene, wanted: Wanted, listeners: list[Listener]) -> list[Finding]:
    if not wanted.http_enabled or not wanted.http_port:
        return []
    own = _own_pids(scene)
    others = [
        each
        for each in listeners
        if each.port == wanted.http_port and _meet(each.host, wanted.http_host) and each.pid not in own
    ]
    if not others or (scene.status is not None and scene.status.get("http")):
        return []
    pid = others[0].pid
    who = f"'{name_of(pid)}' (pid {pid})" if pid else "another user's program"
    return [
        TOPIC.fail(
            f"Port {wanted.http_port} is held by {who}; the daemon cannot listen there.",
            f"fermix config set http.port {_free_port(wanted.http_port, listeners)}",
        )
    ]


def _open_to_others(scene: Scene, wanted: Wanted, listeners: list[Listener]) -> list[Finding]:
    """What is written counts even where the settings refuse it; what listens counts in any case."""
    host = _written_host(scene) or wanted.http_host
    findings = []
    if problem := scene.http_problem():
        findings.append(TOPIC.fail(problem.message, problem.hint))
    elif wanted.http_enabled and not is_loopback(host):
        told = f"'http.host' is {host!r}: other machines reach fermix; each needs a device's token."
        findings.append(TOPIC.warn(told, "fermix tokens list"))
    own = _own_pids(scene)
    findings += [
        TOPIC.fail(
            f"The daemon (pid {each.pid}) listens on {each.host}:{each.port}, open to others.",
            "fermix config set http.host 127.0.0.1 && fermix restart",
        )
        for each in listeners
        if each.pid in own and not is_loopback(each.host) and is_loopback(host)
    ]
    return findings


def _written_host(scene: Scene) -> str | None:
    with suppress(ConfigError, tomllib.TOMLDecodeError):
        http = read_source(scene.home.config).document.get("http")
        host = http.get("host") if isinstance(http, dict) else None
        return host if isinstance(host, str) else None
    return None


def listening() -> list[Listener]:
    """Every TCP socket in this network that is listened on."""
    import psutil  # takes a while to import, and no other check needs it

    return [
        Listener(each.laddr.ip, each.laddr.port, each.pid)
        for each in psutil.net_connections(kind="tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr
    ]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _meet(one: str, other: str) -> bool:
    """Whether both cannot be listened on at once."""
    other = "127.0.0.1" if other == "localhost" else other
    return one == other or one in _ANY or other in _ANY


def _free_port(taken: int, listeners: list[Listener]) -> int:
    used = {each.port for each in listeners}
    return next((port for port in range(taken + 1, min(taken + 200, 65_536)) if port not in used), 0)


def _own_pids(scene: Scene) -> set[int | None]:
    if scene.status is None:
        return set()
    return {
        each for each in (scene.status.get("pid"), scene.status.get("arbiter_pid")) if isinstance(each, int)
    }
