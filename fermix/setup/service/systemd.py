"""The text of the systemd unit, for a person's own service manager and for the machine's.

Source: systemd.service(5), systemd.exec(5), systemd.kill(5), systemd.syntax(7) of systemd 252; nothing
newer is used, so that what `systemd-analyze verify` accepts there is accepted everywhere since.
"""

from __future__ import annotations

import glob
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fermix.errors import ServiceError
from fermix.setup.service.places import SIGNATURE, Scope

STOP_MARGIN_S = 10.0
"""What systemd waits longer than the daemon itself may take to end."""

RESTART_S = 5
"""Pause before a new start: longer than a warm start takes (R188 is what a shorter one does)."""

UNREPAIRABLE = 78
"""The exit status of a daemon that starts no better until somebody changes something."""

MADE = "# Folders made for it: "
"""How the last line of a unit begins for which folders were made."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who the daemon of a system unit runs as."""

    user: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFacts:
    """What a unit is made from."""

    scope: Scope
    version: str
    command: tuple[str, ...]
    """The words that start fermix, without `run`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the command needs in its environment; nothing for a binary."""
    home: Path
    environment_file: Path
    longest_stop_s: float
    """How long the daemon may take from SIGTERM to its end."""
    account: Account | None = None
    """None in a user's unit."""
    is_confined: bool = True
    """Whether a user's unit gets a user namespace, which some of its protection rests on."""
    folders: tuple[str, ...] = ()
    """Folders that were made for the unit, named in its last line."""


def unit_text(facts: UnitFacts) -> str:
    """The whole unit file.

    Raises: ServiceError when a path has characters that no unit can hold.
    """
    sections = (
        _head(facts),
        _unit(facts),
        _service(facts),
        _RESTARTS,
        _stopping(facts),
        _protection(facts),
        _LEFT_OUT,
        _install(facts),
        f"{MADE}{shlex.join(facts.folders)}\n" if facts.folders else "",
    )
    return "".join(sections)


def folders_made(text: str) -> tuple[str, ...]:
    """The folders an installed unit names as made for it."""
    found = [line.removeprefix(MADE) for line in text.splitlines() if line.startswith(MADE)]
    try:
        return tuple(shlex.split(found[-1])) if found else ()
    except ValueError:  # somebody edited it
        return ()


def quoted(word: str, *, is_argument: bool = False) -> str:
    """A word as a unit file holds it.

    is_argument: of a command line, where systemd also replaces `$NAME`.
    Raises: ServiceError for control characters.
    """
    _check(word)
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text.replace("$", "$$") if is_argument else text}"'


def _check(word: str) -> None:
    if any(ord(char) < 32 or ord(char) == 127 for char in word):
        raise ServiceError(
            f"A service unit cannot hold {word!r}: it has control characters; expected a plain path."
        )


def _path(path: Path) -> str:
    """A path that stands alone on its line; systemd takes quotes there for a part of it."""
    _check(str(path))
    return str(path).replace("%", "%%")


def _head(facts: UnitFacts) -> str:
    edit = "systemctl --user edit fermix" if facts.scope is Scope.USER else "sudo systemctl edit fermix"
    return (
        f"{SIGNATURE}{facts.version}. `fermix service status` compares it, `fermix service install` repairs"
        f" it.\n# Your own changes belong into a drop-in, which stays: {edit}\n"
    )


def _unit(facts: UnitFacts) -> str:
    network = (
        "Wants=network-online.target\nAfter=network-online.target\n" if facts.scope is Scope.SYSTEM else ""
    )
    return (
        "[Unit]\nDescription=fermix, a personal AI agent\n"
        f"{network}# Ten ends in five minutes and it stays down; `fermix start` forgets them.\n"
        "StartLimitIntervalSec=300\nStartLimitBurst=10\n\n"
    )


def _service(facts: UnitFacts) -> str:
    program, *words = facts.command
    command = " ".join((quoted(program), *(quoted(word, is_argument=True) for word in words)))
    lines = ["[Service]", "Type=exec"]
    if facts.account is not None:
        lines += [f"User={_path(Path(facts.account.user))}", f"Group={_path(Path(facts.account.group))}"]
    lines += [f'ExecStart={command} "run"', f'ExecReload={command} "reload"']
    lines.append(f"WorkingDirectory=-{_path(facts.home)}")
    variables = {"FERMIX_HOME": str(facts.home), **facts.variables}
    lines += [f"Environment={quoted(f'{name}={value}')}" for name, value in variables.items()]
    lines += [f"EnvironmentFile=-{glob.escape(_path(facts.environment_file))}", ""]
    return "\n".join(lines)


_RESTARTS = f"""
# {UNREPAIRABLE} says that a restart repairs nothing: a wrong setting, a missing secret, a newer database.
Restart=on-failure
RestartSec={RESTART_S}s
RestartPreventExitStatus={UNREPAIRABLE}
# A command that took too much memory ends alone; the daemon tells the model.
OOMPolicy=continue
"""


def _stopping(facts: UnitFacts) -> str:
    seconds = round(facts.longest_stop_s + STOP_MARGIN_S)
    return (
        "\n# Only the supervisor is asked to stop: it lets running turns end, their commands with them.\n"
        "# Whatever is left after that is killed.\n"
        f"KillMode=mixed\nTimeoutStopSec={seconds}s\n"
    )


_EVERYWHERE = """NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
KeyringMode=private
"""

_NAMESPACES = """CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=full
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectHostname=yes
PrivateMounts=yes
"""


def _protection(facts: UnitFacts) -> str:
    text = (
        "\n# Protection that the owner's commands, which run in here too, can live with. sudo and other\n"
        f"# programs that gain rights do not work, nor can such be made.\n{_EVERYWHERE}"
    )
    if facts.scope is Scope.SYSTEM:
        return text + _NAMESPACES
    if facts.is_confined:
        return (
            f"{text}# A user's service manager gives these in a user namespace: files of other users,\n"
            "# root's too, belong to `nobody` in there. `fermix service install --plain` goes without.\n"
            f"PrivateUsers=yes\n{_NAMESPACES}"
        )
    return (
        f"{text}# Plain: without a user namespace and what needs one (ProtectSystem, PrivateUsers).\n"
        "# A user's processes have few rights to give up beyond these.\n"
    )


_LEFT_OUT = """
# Left out on purpose:
#   ProtectSystem=strict, ProtectHome    its work is in the owner's folders
#   PrivateTmp                           the owner says: look at /tmp/build.log
#   PrivateDevices, DeviceAllow          microphones, serial ports, graphics cards
#   ProtectClock                         closes every other device too; the clock is closed above
#   MemoryDenyWriteExecute               browsers, Java and WebAssembly make code while they run
#   RestrictNamespaces, ~@mount          jails, browsers and containers are made of namespaces
#   ProtectProc, ProcSubset              the daemon reads /proc to tell whose process speaks to it
#   ~@debug, ~@privileged, ~@resources   debuggers, tar and nice
#   UMask                                files made for the owner get the owner's usual modes
#   RemoveIPC                            would take shared memory from the owner's other programs
#   PrivateNetwork, IPAddressDeny        providers and chats are reached over the network
"""


def _install(facts: UnitFacts) -> str:
    target = "default.target" if facts.scope is Scope.USER else "multi-user.target"
    return f"\n[Install]\nWantedBy={target}\n"
